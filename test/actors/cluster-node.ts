/** A node's actors with real files, the engine of tests, and a test in the place of consensus. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CollectionStore, openCollectionStore } from '../../actors/collection/store.js';
import { CopyRoom } from '../../actors/context/copy-room.js';
import type { CarriedOut, Desired, LocalData, NodeNews } from '../../actors/context/desired.js';
import { MemoryRoom } from '../../actors/context/memory-room.js';
import { openingGate } from '../../actors/context/opening-gate.js';
import { VerifiedReplicas } from '../../actors/context/verified-replicas.js';
import { NodeView } from '../../actors/context/view.js';
import { AliasFile, type AliasStore } from '../../actors/node/alias-store.js';
import type { NodeMessage } from '../../actors/node/messages.js';
import { CONSENSUS, nodeBehaviour } from '../../actors/node/shell.js';
import { BuildBudget } from '../../actors/optimizer/budget.js';
import { NodePace } from '../../actors/optimizer/pace.js';
import { ReplicaFiles } from '../../actors/replica/files.js';
import { NO_CALLS } from '../../actors/requests/answer-call.js';
import { ActorSystem } from '../../actors/runtime/actor.js';
import type { ActorRef } from '../../actors/runtime/behaviour.js';
import { EngineSignals } from '../../actors/runtime/signals.js';
import { Assignments } from '../../actors/shard-log/assignments.js';
import { NO_ARCHIVES } from '../../actors/snapshots/no-snapshots.js';
import { EngineWithFiles, type FakeEngine } from './fake-engine.js';
import { FakeWorld } from './fake-world.js';

export interface ClusterNode {
  readonly node: ActorRef<NodeMessage>;
  readonly view: NodeView;
  readonly engine: FakeEngine;
  readonly world: FakeWorld;
  /** What the node said, the newest last. */
  readonly told: readonly CarriedOut[];
  readonly local: () => LocalData | null;
  /** Lets messages and files move until it holds. */
  until(holds: () => boolean): Promise<void>;
  /** Desires and waits until that is carried out. */
  carryOut(desired: Desired): Promise<CarriedOut>;
  ask<Answer>(make: (replyTo: number) => NodeMessage): Promise<Answer>;
}

interface Stores {
  readonly store: CollectionStore;
  readonly aliases: AliasStore;
}

/** wrap: takes the place of the real stores. */
export async function startClusterNode(storagePath: string, wrap: (stores: Stores) => Stores = (stores) => stores): Promise<ClusterNode> {
  const world = new FakeWorld();
  const engine = new EngineWithFiles();
  const view = new NodeView();
  const verified = new VerifiedReplicas(async (folders) => new Map(folders.map((folder) => [folder, null])));
  const real = { store: await openCollectionStore(storagePath, () => {}), aliases: new AliasFile(storagePath, () => {}) };
  const services = {
    engine,
    files: new ReplicaFiles(engine, verified),
    signals: new EngineSignals(engine),
    ...wrap(real),
    verified,
    budget: new BuildBudget(1),
    pace: new NodePace(),
    room: new MemoryRoom(null),
    copyRoom: new CopyRoom(null, new MemoryRoom(null)),
    openingGate: openingGate(null, new MemoryRoom(null), null),
    archive: NO_ARCHIVES,
    timers: world.ports.timers,
    optimizersOverwrite: {},
    cpus: 2,
    readers: 2,
    calls: NO_CALLS,
    assignments: new Assignments(),
    propose: () => Promise.reject(new Error('nobody proposes here')),
    barrier: null,
  };
  const told: CarriedOut[] = [];
  let local: LocalData | null = null;
  const consensus = consensusOf(told);
  const node = new ActorSystem(world.ports).spawn(
    nodeBehaviour(),
    'node',
    {
      services,
      view,
      startConsensus: (_context, found) => {
        local = found;
        return consensus;
      },
    },
    () => {},
  );
  const until = async (holds: () => boolean) => {
    const startedMs = performance.now();
    while (!holds()) {
      if (performance.now() - startedMs > 20_000)
        throw new Error(`it does not come to pass; ${world.logged.join('; ')}; ${JSON.stringify(told.at(-1))}`);
      world.advance(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const carryOut = async (desired: Desired) => {
    node.report({ kind: 'desire', desired });
    await until(() => told.at(-1)?.index === desired.index);
    return told.at(-1) as CarriedOut;
  };
  const ask = async <Answer>(make: (replyTo: number) => NodeMessage): Promise<Answer> => {
    let ended = false;
    const answer = node.ask<Answer>(make, 60_000);
    answer.then(
      () => {
        ended = true;
      },
      () => {
        ended = true;
      },
    );
    await until(() => ended);
    return answer;
  };
  await until(() => local !== null);
  return { node, view, engine, world, told, local: () => local, until, carryOut, ask };
}

function consensusOf(told: CarriedOut[]): ActorRef<NodeNews> {
  const hear = ({ index, failures }: NodeNews) => {
    told.push({ index, failures });
    return 'sent' as const;
  };
  return { path: `/node/${CONSENSUS}`, tell: hear, report: hear, ask: () => Promise.reject(new Error('it answers nothing')) };
}

/** The store with some of its functions replaced. */
export function storeWith(store: CollectionStore, changed: Partial<CollectionStore>): CollectionStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (name in changed) return Reflect.get(changed, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** What stands below a storage folder: collections with their belonging and shards, what was set aside, and aliases. */
export async function printStorage(storagePath: string): Promise<string> {
  const { store, aliases } = { store: await openCollectionStore(storagePath, () => {}), aliases: new AliasFile(storagePath, () => {}) };
  const lines: string[] = [];
  for (const folder of await store.scan()) {
    const { name, belonging, config } = await store.load(folder);
    const shards = (await readdir(store.path(folder))).filter((file) => file !== 'config.json').sort();
    const said =
      belonging === undefined ? 'of no cluster' : `uid ${belonging.uid} revision ${belonging.revision} shards ${belonging.shards.join()}`;
    lines.push(`${name}: ${said}, threshold ${config.optimizer_config.indexing_threshold}, files ${shards.join()}`);
  }
  for (const kept of await readdir(join(storagePath, 'set-aside')).catch(() => [])) lines.push(`set aside: ${kept.replace(/\..*/, '')}`);
  for (const [alias, collection] of await aliases.load()) lines.push(`alias ${alias}→${collection}`);
  return lines.join('\n');
}

export function pointsOf(storagePath: string, folder: string, shardId: number): Promise<string> {
  return readFile(join(storagePath, 'collections', folder, String(shardId), 'points'), 'utf8');
}
