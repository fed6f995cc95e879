/** `troupe actors`: the tree of actors of a node. */

import { argumentWords, jsonLine, readArguments } from '../client/arguments.js';
import { CONNECTION_USAGE, secondsOf, withNode } from '../client/connection.js';
import { type Tool, wrongArguments } from '../client/tool.js';

/** Of `GET /telemetry`, as far as it is shown. */
interface ToldActor {
  readonly path: string;
  readonly kind: string;
  readonly state: string;
  readonly replicaState?: string;
  readonly mailbox: { readonly depth: number; readonly capacity: number };
  readonly processed: number;
  readonly restarts: number;
  readonly lastError: string | null;
  readonly recent: readonly { readonly timeMs: number; readonly message: string; readonly summary: string; readonly state: string }[];
  readonly children: readonly ToldActor[];
}

export const ACTORS_TOOL: Tool = {
  usage: `Usage: troupe actors [path] [options]

Shows the tree of actors of a node with their states and mailboxes, or a part of it:

  troupe actors /node/cities --recent

Options:
  --recent               the last messages of each actor, too
  --kind <name>          only actors of a kind, such as replica or optimizer, with those above them
  --watch <seconds>      show it again and again

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, {
      recent: { type: 'boolean' },
      kind: { type: 'string' },
      watch: { type: 'string' },
    });
    const [path = '/node'] = argumentWords(null, positionals, 'path?');
    const watchMs = values.watch === undefined ? null : secondsOf('--watch', values.watch, 1) * 1000;
    return withNode(values, async (node) => {
      for (;;) {
        const { app } = await node.result<{ app: { actors: ToldActor } }>('GET', '/telemetry');
        const actor = actorAt(app.actors, path);
        if (actor === null) throw wrongArguments(`there is no actor ${path}`);
        if (watchMs !== null && process.stdout.isTTY === true) out('\u001b[H\u001b[2J');
        out(values.json === true ? jsonLine(actor) : actorsText(actor, values.kind ?? null, values.recent === true));
        if (watchMs === null) return 0;
        await new Promise((done) => setTimeout(done, watchMs));
      }
    });
  },
};

function actorAt(actor: ToldActor, path: string): ToldActor | null {
  if (actor.path === path) return actor;
  for (const child of actor.children) {
    const found = actorAt(child, path);
    if (found !== null) return found;
  }
  return null;
}

/** The tree as text: one line for each actor, two for one with an error. */
export function actorsText(actor: ToldActor, kind: string | null, withRecent: boolean): string {
  return linesOf(actor, kind, withRecent, '', '').join('');
}

function linesOf(actor: ToldActor, kind: string | null, withRecent: boolean, lead: string, below: string): string[] {
  const children = actor.children.filter((child) => kind === null || hasKind(child, kind));
  const { lastError, mailbox, path, processed, recent, replicaState, restarts, state } = actor;
  const facts = [
    replicaState === undefined || replicaState === state ? state : `${state}, ${replicaState}`,
    mailbox.depth > 0 ? `${mailbox.depth} of ${mailbox.capacity} messages wait` : '',
    `${processed} done`,
    restarts > 0 ? `${restarts} restarts` : '',
  ].filter((fact) => fact !== '');
  const inner = `${below}${children.length > 0 ? '│ ' : '  '}`;
  return [
    `${lead}${path.slice(path.lastIndexOf('/') + 1)}  ${actor.kind}: ${facts.join(' · ')}\n`,
    ...(lastError === null ? [] : [`${inner}  last error: ${lastError.replaceAll('\n', ' ')}\n`]),
    ...(withRecent
      ? recent.map(
          ({ message, state, summary, timeMs }) =>
            `${inner}  ${clockText(timeMs)} ${message}${summary === '' ? '' : ` (${summary})`} → ${state}\n`,
        )
      : []),
    ...children.flatMap((child, at) => {
      const isLast = at === children.length - 1;
      return linesOf(child, kind, withRecent, `${below}${isLast ? '└─ ' : '├─ '}`, `${below}${isLast ? '   ' : '│  '}`);
    }),
  ];
}

function hasKind(actor: ToldActor, kind: string): boolean {
  return actor.kind === kind || actor.children.some((child) => hasKind(child, kind));
}

/** Time of day in UTC, to the millisecond. */
function clockText(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(11, 23);
}
