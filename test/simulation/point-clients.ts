/** Clients that write, read and delete points by any node, and what they must have seen. */

import type { NodeApi } from '../../actors/requests/node-api.js';
import { outcomeOf } from '../../protocols/errors.js';
import type { ShardKey } from '../../protocols/model/cluster.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { RawRequest } from '../../storage/threads/messages.js';
import { sampleConfig } from '../actors/samples.js';
import { type CallParts, callNode, type Ended, TIMEOUT_MS } from './calls.js';
import { checkLinearizable } from './linearizable.js';
import type { SimulatedNode } from './node.js';
import { type CountCall, wrongCount } from './point-counts.js';
import { missedWrite, NO_POINT, type PointAnswer, type PointCall, type PointOperation, pointModel } from './point-model.js';
import { POINTS, PointNames } from './point-names.js';
import type { Stream } from './random.js';

/** Of the cluster, not of the request: whether a write was carried out, nobody knows. */
const FAILURES = new Set(['unavailable', 'timeout', 'busy', 'storage']);
/** A node that has just joined does not know of the collection yet, or of its keys. */
const EARLY = /^Collection .* doesn't exist|^Shard key .* not found|^the collection has no shards/;
/** A peer that was removed answers for itself once it is started again, if it has all shards. */
const APART = /^points of collection .* was made in a cluster and has \d+ of its \d+ shards on this node/;
const KEYS: readonly ShardKey[] = ['north', 'south'];
/** Changes of points when the log of a replica begins anew, and how long after that. */
const PRESSED = 6;
const PRESSED_MS = 60;
/** Of all seeds: collections with shard keys, and with an index of a payload key. */
const KEYED = 0.3;
const INDEXED = 0.5;
const FOUNDING_MS = 20_000;

/**
 * What a read at each consistency promises: `linearizable`; `complete`: it misses no write that was acknowledged before it began;
 * `weak`: only what was written once.
 */
const PROMISES = { 1: 'weak', 2: 'weak', quorum: 'complete', majority: 'linearizable', all: 'linearizable' } as const;
type Consistency = '1' | '2' | 'quorum' | 'majority' | 'all';

export interface PointCounts {
  writes: number;
  written: number;
  reads: number;
  answered: number;
}

type Noted = { -readonly [Name in keyof PointCall]: PointCall[Name] };

/** The answer's bytes; `notFound` for a point; `refused`: nothing has changed; null: it failed, and nobody knows what has changed. */
type Answer = Uint8Array | 'notFound' | 'refused' | null;

interface Write {
  readonly operation: WriteOperation;
  /** Keys that it names; null: none. */
  readonly keys: readonly ShardKey[] | null;
  readonly points: readonly number[];
  readonly point: PointOperation;
  readonly body: object;
}

export class PointClients {
  readonly counts: PointCounts = { writes: 0, written: 0, reads: 0, answered: 0 };
  /** Histories that took too many steps to check. */
  undecided = 0;
  readonly #names: PointNames;
  readonly #calls: ReadonlyMap<number, Noted[]>;
  readonly #counted: CountCall[] = [];
  #values = 0;
  #stopped = false;

  constructor(
    private readonly parts: CallParts,
    private readonly nodes: readonly SimulatedNode[],
    private readonly random: Stream,
  ) {
    this.#names = new PointNames(random.chance(KEYED) ? KEYS : []);
    this.#calls = new Map(this.#names.all.map((point) => [point, []]));
  }

  /** Makes the collection. */
  async found(node: SimulatedNode): Promise<void> {
    const { api } = node;
    const config = sampleConfig();
    const { keys } = this.#names;
    const params = {
      ...config.params,
      ...(keys.length === 0 ? {} : { sharding_method: 'custom' as const }),
      shard_number: this.random.integer(1, keys.length === 0 ? 3 : 2),
      replication_factor: this.random.integer(2, 3),
      write_consistency_factor: this.random.integer(1, 2),
    };
    await api?.createCollection(POINTS, { ...config, params }, FOUNDING_MS);
    const made = { shardsNumber: null, replicationFactor: null, placement: null, initialState: null };
    for (const key of keys) await api?.cluster?.updateCollectionCluster(POINTS, { kind: 'createShardKey', key, ...made }, FOUNDING_MS);
    if (!this.random.chance(INDEXED)) return;
    const index = this.#request(node, { field_name: 'value', field_schema: 'keyword' }, {});
    await api?.write(POINTS, 'createFieldIndex', true, index);
  }

  start(clients: number): void {
    for (let client = 1; client <= clients; client++) this.#live(`points ${client}`);
  }

  /** A replica is about to be filled: points are changed before it has them, while it gets them, and after. */
  press(): void {
    for (let writes = 0; writes < PRESSED; writes++) void this.#press();
  }

  async #press(): Promise<void> {
    await this.parts.world.sleep(this.random.between(0, PRESSED_MS));
    const node = this.random.pick(this.nodes);
    if (this.#stopped || node.api === null) return;
    await this.#write('press', node, this.#change(this.random.pick(this.#names.all)), true);
  }

  stop(): void {
    this.#stopped = true;
  }

  /** From now on, what was acknowledged has been applied everywhere. */
  settle(): void {
    for (const calls of this.#calls.values())
      for (const call of calls) if (call.acknowledged && call.answered === Infinity) call.answered = this.#now;
  }

  /** The node writes, reads all points at the strongest consistency, and counts them. True when it answered. */
  async finish(node: SimulatedNode): Promise<boolean> {
    const put = () => this.#write('check', node, this.#put([this.random.pick(this.#names.all)]), true);
    // One that has just started finds out first what was agreed meanwhile.
    for (let tries = 1; !(await put()); tries++) {
      if (tries === 5) return false;
      await this.parts.world.sleep(200);
    }
    for (const keys of this.#names.keys.length === 0 ? [null] : this.#names.keys.map((key) => [key]))
      if (!(await this.#read('check', node, 'all', keys))) return false;
    return this.#count('check', node, 'all');
  }

  /** Whether what clients saw can have happened. */
  check(): void {
    for (const count of this.#counted) {
      const wrong = wrongCount(count, (point) => this.#calls.get(point) as Noted[]);
      if (wrong !== null) this.parts.violation(`acknowledged: ${wrong}`);
    }
    for (const [point, calls] of this.#calls) {
      const missed = missedWrite(calls);
      if (missed !== null) this.parts.violation(`acknowledged: point ${point}: ${missed}\n${linesOf(calls)}`);
      const promised = calls.filter((call) => call.operation.kind !== 'read' || call.promise === 'linearizable');
      const verdict = checkLinearizable(promised, pointModel);
      if (verdict === 'undecided') this.undecided += 1;
      if (verdict === 'impossible')
        this.parts.violation(`linearizability: what clients saw of point ${point} cannot have happened\n${linesOf(shortest(promised))}`);
    }
  }

  get #now(): number {
    return this.parts.world.events;
  }

  async #live(who: string): Promise<void> {
    while (!this.#stopped) {
      await this.parts.world.sleep(this.random.between(20, 900));
      if (this.#stopped) return;
      const node = this.random.pick(this.nodes);
      if (node.api === null) continue;
      if (this.random.chance(0.55)) await this.#write(who, node, this.#nextWrite(), this.random.chance(0.8));
      else await this.#nextRead(who, node, this.random.pick(Object.keys(PROMISES) as Consistency[]));
    }
  }

  #nextRead(who: string, node: SimulatedNode, consistency: Consistency): Promise<boolean> {
    if (this.random.chance(0.1)) return this.#count(who, node, consistency);
    const { keys } = this.#names;
    return this.#read(who, node, consistency, keys.length === 0 ? null : [this.random.pick(keys)]);
  }

  #nextWrite(): Write {
    const { all, keys } = this.#names;
    const first = this.random.pick(all);
    const own = this.#names.keyOf(first);
    // Ids of all keys at once, now and then.
    const among = own !== null && this.random.chance(0.2) ? keys : own === null ? null : [own];
    const ids = this.random.shuffled([...new Set(this.#names.under(among).map((point) => this.#names.idOf(point)))]);
    const chosen = ids.slice(0, this.random.integer(1, 3));
    const points = this.#names.under(among).filter((point) => chosen.includes(this.#names.idOf(point)));
    const draw = this.random.integer(1, 100);
    if (draw <= 60) return this.#put(points);
    // By a filter, and under several keys, those are meant that are there.
    const filter = this.random.chance(0.3) || points.length > chosen.length;
    const selected = filter ? { filter: { must: [{ has_id: chosen }] } } : { points: chosen };
    // Without keys it means all of them.
    const named = points.length > chosen.length && this.random.chance(0.5) ? null : among;
    if (draw <= 80) return { operation: 'deletePoints', keys: named, points, point: { kind: 'delete' }, body: selected };
    if (!filter) return this.#change(first);
    const value = this.#nextValue();
    return { operation: 'setPayload', keys: named, points, point: { kind: 'touch', value }, body: { ...selected, payload: { value } } };
  }

  #change(point: number): Write {
    const value = this.#nextValue();
    const own = this.#names.keyOf(point);
    const body = { points: [this.#names.idOf(point)], payload: { value } };
    return { operation: 'setPayload', keys: own === null ? null : [own], points: [point], point: { kind: 'change', value }, body };
  }

  #put(points: readonly number[]): Write {
    const point = { kind: 'put', value: this.#nextValue() } as const;
    const keys = [...new Set(points.flatMap((one) => this.#names.keyOf(one) ?? []))];
    const ids = [...new Set(points.map((one) => this.#names.idOf(one)))];
    const body = { points: ids.map((id) => ({ id, vector: [id, 0, 0, 1], payload: { value: point.value, put: point.value } })) };
    return { operation: 'upsertPoints', keys: keys.length === 0 ? null : keys, points, point, body };
  }

  #nextValue(): string {
    this.#values += 1;
    return `v${this.#values}`;
  }

  /** True when it was carried out, or there was nothing to change. */
  async #write(who: string, node: SimulatedNode, { body, keys, operation, point, points }: Write, wait: boolean): Promise<boolean> {
    const calls = points.map((one) => this.#note(one, point, 'linearizable'));
    const ordering = this.random.pick(['weak', 'medium', 'strong']);
    const what = `${textOf(point)} ${points.join()}${wait ? '' : ' wait=false'}`;
    this.counts.writes += 1;
    const request = this.#request(node, { ...body, ...keyed(keys) }, { wait: String(wait), ordering });
    const answer = await this.#call(who, node, what, (api) => api.write(POINTS, operation, wait, request));
    if (answer === 'notFound') for (const call of calls) this.#answer(call, { kind: 'none' });
    // Of several shards, others may have taken their parts.
    if (answer === 'refused' && points.length === 1 && !('filter' in body)) this.#forget(calls);
    if (!(answer instanceof Uint8Array)) return answer === 'notFound';
    this.counts.written += 1;
    const { status } = jsonOf(answer) as { status: string };
    for (const call of calls) {
      // Nobody knows yet whether there was a point to change.
      if (status === 'completed') this.#answer(call, { kind: 'done' });
      else if (point.kind !== 'change') Object.assign(call, { answer: { kind: 'done' }, acknowledged: true });
    }
    return true;
  }

  /** Of one key, where there are some: ids are those of other points under each. True when it was answered. */
  async #read(who: string, node: SimulatedNode, consistency: Consistency, keys: readonly ShardKey[] | null): Promise<boolean> {
    const all = this.#names.under(keys);
    const operation = this.random.pick(['retrieve', 'retrieve', 'scroll', 'query'] as const);
    const asked = operation === 'retrieve' ? this.random.shuffled([...all]).slice(0, 3) : all;
    const calls = asked.map((point) => this.#note(point, { kind: 'read' }, PROMISES[consistency]));
    const ids = asked.map((point) => this.#names.idOf(point));
    const body = { ...(operation === 'retrieve' ? { ids } : { limit: 1000 }), with_payload: true, ...keyed(keys) };
    if (operation === 'query') Object.assign(body, { query: [this.random.integer(-1, 1), 0, 0, 1] });
    const what = `${operation} ${asked.join()} at ${consistency}`;
    const answer = await this.#ask(who, node, what, operation, body, consistency);
    if (answer === null) return false;
    const result = jsonOf(answer) as Shown[] | { points: Shown[] };
    const points = Array.isArray(result) ? result : result.points;
    this.parts.story.tell(
      who,
      `  saw ${points.map(({ id, payload: { put, value } }) => `${id}=${value === put ? value : `${put}>${value}`}`).join(' ')}`,
    );
    const order = points.map(({ id, score }) => (operation === 'scroll' ? id : -(score ?? 0)));
    if (operation !== 'retrieve' && order.some((value, at) => at > 0 && value < (order[at - 1] as number)))
      this.parts.violation(`a ${operation} gave the points ${points.map(({ id }) => id).join()}`);
    if (new Set(points.map(({ id }) => id)).size !== points.length) this.parts.violation(`a ${operation} gave a point twice`);
    const seen = new Map(points.map(({ id, payload }) => [id, payload]));
    for (const call of calls) this.#answer(call, { kind: 'seen', ...(seen.get(this.#names.idOf(call.id)) ?? NO_POINT) });
    return true;
  }

  /** Of all keys. True when it was answered. */
  async #count(who: string, node: SimulatedNode, consistency: Consistency): Promise<boolean> {
    const called = this.#now;
    const answer = await this.#ask(who, node, `count at ${consistency}`, 'count', { exact: true }, consistency);
    if (answer === null) return false;
    const { count } = jsonOf(answer) as { count: number };
    this.parts.story.tell(who, `  counted ${count}`);
    this.#counted.push({ points: this.#names.all, called, answered: this.#now, count, complete: PROMISES[consistency] !== 'weak' });
    return true;
  }

  async #ask(
    who: string,
    node: SimulatedNode,
    what: string,
    operation: 'retrieve' | 'scroll' | 'query' | 'count',
    body: object,
    consistency: Consistency,
  ): Promise<Uint8Array | null> {
    const level = consistency === '1' || consistency === '2' ? Number(consistency) : consistency;
    const request: RawRequest = { ...this.#request(node, body, {}), consistency: level };
    this.counts.reads += 1;
    const answer = await this.#call(who, node, what, (api) => api.read(POINTS, operation, request));
    if (!(answer instanceof Uint8Array)) return null;
    this.counts.answered += 1;
    return answer;
  }

  #note(id: number, operation: PointOperation, promise: PointCall['promise']): Noted {
    const call: Noted = { id, operation, promise, called: this.#now, answered: Infinity, answer: null, acknowledged: false };
    (this.#calls.get(id) as Noted[]).push(call);
    return call;
  }

  /** They have changed nothing. */
  #forget(calls: readonly Noted[]): void {
    for (const call of calls) {
      const all = this.#calls.get(call.id) as Noted[];
      all.splice(all.indexOf(call), 1);
    }
  }

  #answer(call: Noted, answer: PointAnswer): void {
    call.answer = answer;
    call.answered = this.#now;
  }

  #request(node: SimulatedNode, body: object, query: Record<string, string>): RawRequest {
    return { path: {}, query, body: Buffer.from(JSON.stringify(body), 'utf8'), deadlineMs: node.nowMs() + TIMEOUT_MS };
  }

  async #call(who: string, node: SimulatedNode, what: string, ask: (api: NodeApi) => Promise<Uint8Array>): Promise<Answer> {
    const ended = await callNode(this.parts, who, node, what, ask);
    const isRemoved = node.cluster?.status().phase === 'Removed';
    return ended === null ? null : this.#answerOf(ended, `${what} on ${node.host}`, isRemoved);
  }

  #answerOf(ended: Ended<Uint8Array>, what: string, isRemoved: boolean): Answer {
    if (ended.kind === 'answered') return ended.answer;
    if (ended.kind === 'lost') return null;
    const { error, lives, stack } = ended;
    const { code, detail } = error;
    const isMissing = code === 'notFound' && /^No point with id/.test(detail);
    const isApart = isRemoved && code === 'unsupported' && APART.test(detail);
    if (!isMissing && !isApart && !EARLY.test(detail) && !FAILURES.has(code) && lives)
      this.parts.violation(`${what} failed: ${code}: ${detail}${stack}`);
    return isMissing ? 'notFound' : outcomeOf(error) === 'none' ? 'refused' : null;
  }
}

function keyed(keys: readonly ShardKey[] | null): object {
  return keys === null ? {} : { shard_key: keys.length === 1 ? keys[0] : keys };
}

interface Shown {
  readonly id: number;
  readonly score?: number;
  readonly payload: { readonly value: string; readonly put: string };
}

function jsonOf(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'));
}

/** The calls up to the first answer that makes it impossible. */
function shortest(calls: readonly PointCall[]): readonly PointCall[] {
  const answers = calls.map((call) => call.answered).sort((one, other) => one - other);
  const upTo = (end: number) =>
    calls.filter((call) => call.called <= end).map((call) => (call.answered <= end ? call : { ...call, answered: Infinity, answer: null }));
  const end = answers.find((answered) => checkLinearizable(upTo(answered), pointModel) === 'impossible') ?? Infinity;
  return upTo(end);
}

function linesOf(calls: readonly PointCall[]): string {
  return [...calls]
    .sort((one, other) => one.answered - other.answered)
    .map((call) => {
      const answer = call.answer === null ? 'open' : textOf(call.answer);
      return `  events ${call.called} to ${call.answered}  ${textOf(call.operation)}${call.operation.kind === 'read' ? ` (${call.promise})` : ''}: ${answer}`;
    })
    .join('\n');
}

function textOf(value: PointOperation | PointAnswer): string {
  return 'value' in value ? `${value.kind} ${value.value}` : value.kind;
}
