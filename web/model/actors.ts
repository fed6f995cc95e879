/** The tree of actors of a report, and what stands out in it. */

import type { ActorReport, EngineReport, Telemetry } from './api-types.js';

export function actorsOf({ app, actors }: Telemetry): ActorReport | undefined {
  return app.actors ?? actors;
}

export function engineOf({ app, engine }: Telemetry): EngineReport | undefined {
  return app.engine ?? engine;
}

/** The actor and all below it. */
export function allOf(actor: ActorReport): ActorReport[] {
  return [actor, ...actor.children.flatMap(allOf)];
}

export function findActor(root: ActorReport, path: string): ActorReport | undefined {
  return allOf(root).find((actor) => actor.path === path);
}

/** Whether the actor or one below it has something in its path or state that was looked for. */
export function isWanted(actor: ActorReport, wanted: string): boolean {
  const text = `${actor.path} ${actor.kind} ${actor.state} ${actor.replicaState ?? ''}`.toLowerCase();
  return text.includes(wanted.toLowerCase()) || actor.children.some((child) => isWanted(child, wanted));
}

/** The last part of its path. */
export function nameOf({ path }: ActorReport): string {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}
