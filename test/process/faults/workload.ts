/**
 * The reference workload: each kind of change once, on a collection that was there and on a new one, and a build. Each set of collections takes
 * it once, so one process can meet several faults, one set for each.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RestAnswer, RestClient } from '../../../ops/rest-client.js';
import { type Effect, type Group, IDS_PER_GROUP, ModelCollection, type ModelPoint, type Outcome, Possible } from './model.js';

/** What one workload works on. */
interface Names {
  readonly base: string;
  readonly fresh: string;
  readonly doomed: string;
  readonly alias: string;
}

/** set: from 0. */
export function namesOf(set: number): Names {
  return { base: `base-${set}`, fresh: `fresh-${set}`, doomed: `doomed-${set}`, alias: `other-name-${set}` };
}

export function collectionsOf({ base, fresh, doomed }: Names): string[] {
  return [base, fresh, doomed];
}

const DIM = 16;
const GROUP_POINTS = 12;
/** More than a log keeps beside its records. */
const TEXT = 'long '.repeat(400);
/** Any answer must be there by then. */
const PATIENCE_MS = 300_000;
const BUILD_MS = 4000;
const BUILD_PAUSE_MAX_MS = 160;
/** A build that fails again and again is waited for no longer than so many seconds. */
const WAIT_SEC = 4;
/** Where nothing fails, all is waited for, also on a busy machine. */
export const PATIENT_WAIT_SEC = 60;

/** What is known of a node's or a cluster's data. */
export class Model {
  private constructor(
    readonly collections: ReadonlyMap<string, ModelCollection>,
    /** By name of an alias: that of its collection. */
    readonly aliases: ReadonlyMap<string, Possible<string | null>>,
  ) {}

  /** Nothing is there. */
  static empty(sets: number): Model {
    const names = Array.from({ length: sets }, (_, set) => namesOf(set));
    return new Model(
      new Map(names.flatMap(collectionsOf).map((name) => [name, new ModelCollection()])),
      new Map(names.map(({ alias }) => [alias, new Possible<string | null>(null)])),
    );
  }

  copy(): Model {
    return new Model(
      new Map([...this.collections].map(([name, collection]) => [name, collection.copy()])),
      new Map([...this.aliases].map(([name, alias]) => [name, alias.copy()])),
    );
  }

  collection(name: string): ModelCollection {
    return this.collections.get(name) as ModelCollection;
  }
}

export interface Tally {
  acknowledged: number;
  refused: number;
  unknown: number;
  /** Of those that were not acknowledged: what came instead. */
  readonly told: string[];
  /** Wrong whatever is found afterwards. */
  readonly findings: string[];
}

export function newTally(): Tally {
  return { acknowledged: 0, refused: 0, unknown: 0, told: [], findings: [] };
}

export class Workload {
  #turn = 0;
  readonly #names: Names;

  /** clients: of the nodes, which take turns. copies: of each shard. set: whose collections it changes. waitSec: for each change. */
  constructor(
    private readonly clients: readonly RestClient[],
    private readonly copies: number,
    readonly model: Model,
    readonly tally: Tally,
    set = 0,
    private readonly waitSec = WAIT_SEC,
  ) {
    this.#names = namesOf(set);
  }

  /** What is there before anything fails: a collection with a graph, rows without one, a field index, and a collection that will go. */
  async prepare(): Promise<void> {
    const { base, doomed } = this.#names;
    await this.create(base);
    await this.create(doomed);
    await this.index(base, 'group', 'integer');
    await this.upsert(doomed, 0, 1);
    for (const group of [0, 1, 2, 3]) await this.upsert(base, group, 1);
    await this.build(base);
    await this.upsert(base, 4, 1);
    await this.optimize(base, false);
    await this.optimize(doomed, false);
    this.needAll();
  }

  /** Before anything fails: from now on there may be builds in this set. In those of other runs there are none, as each costs a thread. */
  async begin(): Promise<void> {
    await this.optimize(this.#names.base, true);
    this.needAll();
  }

  /** When all is over: no start needs to build the same again. */
  async rest(): Promise<void> {
    const { base, fresh } = this.#names;
    for (const name of [base, fresh])
      if (
        this.model
          .collection(name)
          .presence.all()
          .every((there) => there)
      )
        await this.optimize(name, false);
  }

  /** Operations that are acknowledged and perhaps not applied when the node is killed. */
  async leaveUnapplied(): Promise<void> {
    const { base } = this.#names;
    await this.setByFilter(base, 4, { left: 1 });
    await this.setByFilter(base, 3, { left: 2 });
    await this.deleteByFilter(base, 2, false);
    this.needAll();
  }

  /** The same again, after `runShort` on them. */
  async leaveUnappliedAgain(): Promise<void> {
    const { base } = this.#names;
    for (const group of [2, 4]) await this.upsert(base, group, 1);
    await this.leaveUnapplied();
  }

  async run(): Promise<void> {
    const { base, fresh, doomed } = this.#names;
    await this.create(fresh);
    await this.index(fresh, 'group', 'integer');
    await this.upsert(fresh, 0, 1);
    await this.setByFilter(base, 0, { seen: true });
    await this.setById(fresh, 0, { seen: 1 });
    await this.deleteByFilter(base, 1, true);
    await this.upsert(base, 2, 2);
    await this.upsert(base, 5, 1, { text: TEXT });
    await this.dropKey(base, 2, 'revision');
    await this.nameAlias(fresh);
    await this.drop(doomed);
    await this.upsert(fresh, 1, 1, { text: TEXT });
    await this.index(base, 'revision', 'integer');
    await this.upsert(base, 6, 1);
    await this.deleteById(base, 4);
    await this.build(base);
    await this.setById(base, 6, { last: true });
  }

  /** Writes and reads after a start under faults. */
  async runShort(): Promise<void> {
    const { base } = this.#names;
    await this.upsert(base, 7, 1, { text: TEXT });
    await this.setByFilter(base, 0, { started: true });
    await this.deleteById(base, 4);
  }

  // ---------------------------------------------------------------- operations

  private async create(name: string): Promise<void> {
    const body = {
      vectors: { size: DIM, distance: 'Euclid' },
      // In kilobytes of vectors.
      optimizers_config: { indexing_threshold: 2, default_segment_number: 1, vacuum_min_vector_number: 100 },
      shard_number: 1,
      replication_factor: this.copies,
      write_consistency_factor: this.copies === 1 ? 1 : 2,
    };
    const outcome = await this.send('PUT', `/collections/${name}?timeout=${4 * this.waitSec}`, body);
    this.model.collection(name).presence.note(outcome, () => true);
  }

  /** Switches the optimizer of a collection on or off. */
  private async optimize(name: string, isOn: boolean): Promise<void> {
    const body = { optimizers_config: { max_optimization_threads: isOn ? 1 : 0 } };
    await this.send('PATCH', `/collections/${name}?timeout=${4 * this.waitSec}`, body);
  }

  private async drop(name: string): Promise<void> {
    const outcome = await this.send('DELETE', `/collections/${name}?timeout=${4 * this.waitSec}`, undefined);
    this.model.collection(name).presence.note(outcome, () => false);
  }

  private async index(name: string, field_name: string, field_schema: string): Promise<void> {
    await this.send('PUT', `/collections/${name}/index?wait=true&timeout=${this.waitSec}`, { field_name, field_schema });
  }

  private async nameAlias(collection_name: string): Promise<void> {
    const body = { actions: [{ create_alias: { alias_name: this.#names.alias, collection_name } }] };
    const outcome = await this.send('POST', `/collections/aliases?timeout=${4 * this.waitSec}`, body);
    (this.model.aliases.get(this.#names.alias) as Possible<string | null>).note(outcome, () => collection_name);
  }

  private async upsert(name: string, group: number, revision: number, more: Record<string, unknown> = {}): Promise<void> {
    const points = groupPoints(group, revision, more);
    await this.change(name, group, 'PUT', `points?wait=true&timeout=${this.waitSec}`, { points }, () => points);
  }

  private async setById(name: string, group: number, payload: Record<string, unknown>): Promise<void> {
    await this.change(
      name,
      group,
      'POST',
      `points/payload?wait=true&timeout=${this.waitSec}`,
      { payload, points: idsOf(group) },
      setting(payload),
    );
  }

  private async setByFilter(name: string, group: number, payload: Record<string, unknown>): Promise<void> {
    await this.change(name, group, 'POST', 'points/payload?wait=false', { payload, filter: filterOf(group) }, setting(payload));
  }

  private async dropKey(name: string, group: number, key: string): Promise<void> {
    const dropped: Effect = (points) =>
      points.map(({ payload, ...point }) => ({
        ...point,
        payload: Object.fromEntries(Object.entries(payload).filter(([own]) => own !== key)),
      }));
    await this.change(
      name,
      group,
      'POST',
      `points/payload/delete?wait=true&timeout=${this.waitSec}`,
      { keys: [key], filter: filterOf(group) },
      dropped,
    );
  }

  private async deleteByFilter(name: string, group: number, wait: boolean): Promise<void> {
    await this.change(name, group, 'POST', `points/delete?wait=${wait}&timeout=${this.waitSec}`, { filter: filterOf(group) }, () => []);
  }

  private async deleteById(name: string, group: number): Promise<void> {
    await this.change(name, group, 'POST', `points/delete?wait=true&timeout=${this.waitSec}`, { points: idsOf(group) }, () => []);
  }

  private async change(name: string, group: number, method: string, path: string, body: unknown, effect: Effect): Promise<void> {
    const outcome = await this.send(method, `/collections/${name}/${path}`, body);
    const collection = this.model.collection(name);
    collection.group(group).note(outcome, effect);
    // An acknowledgement is one of the collection, too.
    if (outcome === 'acknowledged' && !collection.presence.settle(true)) this.tally.findings.push(`${name} is not there and takes points`);
  }

  /** Lets the optimizer do its work, if it comes to an end soon. */
  private async build(name: string): Promise<void> {
    const deadline = performance.now() + (this.waitSec === WAIT_SEC ? BUILD_MS : PATIENCE_MS);
    for (let pauseMs = 10; performance.now() < deadline; pauseMs = Math.min(2 * pauseMs, BUILD_PAUSE_MAX_MS)) {
      const answer = await inTime(this.next().call('GET', `/collections/${name}`));
      const info = ((answer === 'late' ? null : answer)?.body as { result?: { status: string; indexed_vectors_count: number } } | undefined)
        ?.result;
      if (answer === null || (info?.status === 'green' && info.indexed_vectors_count > 0)) return;
      await sleep(pauseMs);
    }
  }

  private async send(method: string, path: string, body: unknown): Promise<Outcome> {
    const sent = this.next().call(method, path, body);
    const answer = await inTime(sent);
    const outcome = outcomeOf(answer);
    this.tally[outcome] += 1;
    const request = `${method} ${path}`;
    if (answer === 'late') this.tally.findings.push(`${request}: no answer within ${PATIENCE_MS} ms`);
    if (outcome !== 'acknowledged')
      this.tally.told.push(
        `${request}: ${answer === null || answer === 'late' ? 'no answer' : `${answer.status} ${answer.text.slice(0, 200)}`}`,
      );
    return outcome;
  }

  private next(): RestClient {
    return this.clients[this.#turn++ % this.clients.length] as RestClient;
  }

  private needAll(): void {
    if (this.tally.told.length > 0) throw new Error(`without faults, the workload fails: ${this.tally.told.join('; ')}`);
  }
}

/** Codes of 4xx say that nothing was done; 408 and 429 come of the load. Of the others nobody knows. */
function outcomeOf(answer: RestAnswer | 'late' | null): Outcome {
  if (answer === null || answer === 'late') return 'unknown';
  if (answer.status === 200) return 'acknowledged';
  return answer.status >= 400 && answer.status < 500 && answer.status !== 408 ? 'refused' : 'unknown';
}

/** Null: the connection broke. */
export async function inTime(asked: Promise<RestAnswer>): Promise<RestAnswer | 'late' | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), PATIENCE_MS);
  });
  return Promise.race([asked.catch(() => null), late]).finally(() => clearTimeout(timer));
}

function setting(payload: Record<string, unknown>): Effect {
  return (points) => points.map((point) => ({ ...point, payload: { ...point.payload, ...payload } }));
}

export function filterOf(group: number): unknown {
  return { must: [{ key: 'group', match: { value: group } }] };
}

function idsOf(group: number): number[] {
  return Array.from({ length: GROUP_POINTS }, (_, member) => group * IDS_PER_GROUP + member);
}

export function groupPoints(group: number, revision: number, more: Record<string, unknown> = {}): Group {
  return idsOf(group).map(
    (id): ModelPoint => ({
      id,
      // Components that a float32 holds exactly.
      vector: Array.from({ length: DIM }, (_, at) => ((id * 31 + at * 17 + revision * 7) % 256) / 8),
      payload: { group, revision, ...more },
    }),
  );
}
