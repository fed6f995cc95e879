/** Clients that write, read and delete points by any node, and what they must have seen. */

import { errorFacts } from '../../protocols/errors.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { RawRequest } from '../../storage/engine/messages.js';
import { sampleConfig } from '../actors/samples.js';
import { checkLinearizable } from './linearizable.js';
import type { SimulatedNode } from './node.js';
import { missedWrite, type PointAnswer, type PointCall, type PointOperation, pointModel } from './point-model.js';
import type { Stream } from './random.js';
import type { Story } from './story.js';
import type { Life, World } from './world.js';

export const POINTS = 'points';
const IDS = 12;
const TIMEOUT_MS = 4000;
/** Calls end within their timeout, and this. */
const GRACE_MS = 3000;
/** Of the cluster, not of the request: whether a write was carried out, nobody knows. */
const FAILURES = new Set(['unavailable', 'timeout', 'busy', 'storage']);

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
  readonly ids: readonly number[];
  readonly point: PointOperation;
  readonly body: object;
}

export class PointClients {
  readonly counts: PointCounts = { writes: 0, written: 0, reads: 0, answered: 0 };
  /** Histories that took too many steps to check. */
  undecided = 0;
  readonly #calls = new Map<number, Noted[]>();
  #values = 0;
  #stopped = false;

  constructor(
    private readonly world: World,
    private readonly nodes: readonly SimulatedNode[],
    private readonly story: Story,
    private readonly random: Stream,
    private readonly violation: (what: string) => void,
  ) {
    for (let id = 1; id <= IDS; id++) this.#calls.set(id, []);
  }

  /** Makes the collection. */
  async found(node: SimulatedNode): Promise<void> {
    const config = sampleConfig();
    const params = {
      ...config.params,
      shard_number: this.random.integer(1, 3),
      replication_factor: this.random.integer(2, 3),
      write_consistency_factor: this.random.integer(1, 2),
    };
    await node.api?.createCollection(POINTS, { ...config, params }, 20_000);
  }

  start(clients: number): void {
    for (let client = 1; client <= clients; client++) this.#live(`points ${client}`);
  }

  stop(): void {
    this.#stopped = true;
  }

  /** From now on, what was acknowledged has been applied everywhere. */
  settle(): void {
    for (const calls of this.#calls.values())
      for (const call of calls) if (call.acknowledged && call.answered === Infinity) call.answered = this.world.events;
  }

  /** The node writes, and reads all points at the strongest consistency. True when it answered. */
  async finish(node: SimulatedNode): Promise<boolean> {
    const put = this.#put([this.random.integer(1, IDS)]);
    return (await this.#write('check', node, put, true)) && (await this.#read('check', node, 'all'));
  }

  /** Whether what clients saw can have happened. */
  check(): void {
    for (const [id, calls] of this.#calls) {
      const missed = missedWrite(calls);
      if (missed !== null) this.violation(`acknowledged: point ${id}: ${missed}\n${linesOf(calls)}`);
      const promised = calls.filter((call) => call.operation.kind !== 'read' || call.promise === 'linearizable');
      const verdict = checkLinearizable(promised, pointModel);
      if (verdict === 'undecided') this.undecided += 1;
      if (verdict === 'impossible')
        this.violation(`linearizability: what clients saw of point ${id} cannot have happened\n${linesOf(shortest(promised))}`);
    }
  }

  async #live(who: string): Promise<void> {
    while (!this.#stopped) {
      await this.world.sleep(this.random.between(20, 900));
      if (this.#stopped) return;
      const node = this.random.pick(this.nodes);
      if (node.api === null) continue;
      if (this.random.chance(0.55)) await this.#write(who, node, this.#nextWrite(), this.random.chance(0.8));
      else await this.#read(who, node, this.random.pick(Object.keys(PROMISES) as Consistency[]));
    }
  }

  #nextWrite(): Write {
    const ids = this.random.shuffled([...this.#calls.keys()]).slice(0, this.random.integer(1, 3));
    const draw = this.random.integer(1, 100);
    if (draw <= 60) return this.#put(ids);
    if (draw <= 80) return { operation: 'deletePoints', ids, point: { kind: 'delete' }, body: { points: ids } };
    const point = { kind: 'change', value: this.#nextValue() } as const;
    return { operation: 'setPayload', ids: ids.slice(0, 1), point, body: { points: ids.slice(0, 1), payload: { value: point.value } } };
  }

  #put(ids: readonly number[]): Write {
    const point = { kind: 'put', value: this.#nextValue() } as const;
    const points = ids.map((id) => ({ id, vector: [id, 0, 0, 1], payload: { value: point.value } }));
    return { operation: 'upsertPoints', ids, point, body: { points } };
  }

  #nextValue(): string {
    this.#values += 1;
    return `v${this.#values}`;
  }

  /** True when it was carried out, or there was nothing to change. */
  async #write(who: string, node: SimulatedNode, write: Write, wait: boolean): Promise<boolean> {
    const { ids, operation, point } = write;
    const calls = ids.map((id) => this.#note(id, point, 'linearizable'));
    const ordering = this.random.pick(['weak', 'medium', 'strong']);
    const what = `${textOf(point)} ${ids.join()}${wait ? '' : ' wait=false'}`;
    this.counts.writes += 1;
    const request = this.#request(node, write.body, { wait: String(wait), ordering });
    const answer = await this.#call(who, node, what, (api) => api.write(POINTS, operation, wait, request));
    if (answer === 'notFound') for (const call of calls) this.#answer(call, { kind: 'none' });
    // Of several shards, others may have taken their parts.
    if (answer === 'refused' && ids.length === 1) this.#forget(calls);
    if (answer === 'refused') return this.#isShort(node);
    if (answer === null || answer === 'notFound') return answer !== null;
    this.counts.written += 1;
    const { status } = jsonOf(answer) as { status: string };
    for (const call of calls) {
      // Nobody knows yet whether there was a point to change.
      if (status === 'completed') this.#answer(call, { kind: 'done' });
      else if (point.kind !== 'change') Object.assign(call, { answer: { kind: 'done' }, acknowledged: true });
    }
    return true;
  }

  /** True when it was answered. */
  async #read(who: string, node: SimulatedNode, consistency: Consistency): Promise<boolean> {
    const all = [...this.#calls.keys()];
    const operation = this.random.pick(['retrieve', 'retrieve', 'scroll', 'query'] as const);
    const ids = operation === 'retrieve' ? this.random.shuffled(all).slice(0, 3) : all;
    const calls = ids.map((id) => this.#note(id, { kind: 'read' }, PROMISES[consistency]));
    const body = operation === 'retrieve' ? { ids, with_payload: true } : { limit: 1000, with_payload: true };
    if (operation === 'query') Object.assign(body, { query: [this.random.integer(-1, 1), 0, 0, 1] });
    const level = consistency === '1' || consistency === '2' ? Number(consistency) : consistency;
    const request: RawRequest = { ...this.#request(node, body, {}), consistency: level };
    this.counts.reads += 1;
    const answer = await this.#call(who, node, `${operation} ${ids.join()} at ${consistency}`, (api) =>
      api.read(POINTS, operation, request),
    );
    if (!(answer instanceof Uint8Array)) return false;
    this.counts.answered += 1;
    const result = jsonOf(answer) as Shown[] | { points: Shown[] };
    const points = Array.isArray(result) ? result : result.points;
    const order = points.map(({ id, score }) => (operation === 'scroll' ? id : -(score ?? 0)));
    if (operation !== 'retrieve' && order.some((value, at) => at > 0 && value < (order[at - 1] as number)))
      this.violation(`a ${operation} gave the points ${points.map(({ id }) => id).join()}`);
    if (new Set(points.map(({ id }) => id)).size !== points.length) this.violation(`a ${operation} gave a point twice`);
    const values = new Map(points.map(({ id, payload }) => [id, payload.value]));
    for (const call of calls) this.#answer(call, { kind: 'seen', value: values.get(call.id) ?? null });
    this.story.tell(who, `  saw ${points.map(({ id, payload }) => `${id}=${payload.value}`).join(' ')}`);
    return true;
  }

  #note(id: number, operation: PointOperation, promise: PointCall['promise']): Noted {
    const call: Noted = { id, operation, promise, called: this.world.events, answered: Infinity, answer: null, acknowledged: false };
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

  /** Whether peers were removed that a write would need. */
  #isShort(node: SimulatedNode): boolean {
    const record = node.cluster?.state()?.collections.get(POINTS);
    const factor = record?.config.params.write_consistency_factor ?? 1;
    return [...(record?.shards.values() ?? [])].some(
      ({ replicas }) => [...replicas.values()].filter((state) => state !== 'Listener').length < factor,
    );
  }

  #answer(call: Noted, answer: PointAnswer): void {
    call.answer = answer;
    call.answered = this.world.events;
  }

  #request(node: SimulatedNode, body: object, query: Record<string, string>): RawRequest {
    return { path: {}, query, body: Buffer.from(JSON.stringify(body), 'utf8'), deadlineMs: node.nowMs() + TIMEOUT_MS };
  }

  async #call(
    who: string,
    node: SimulatedNode,
    what: string,
    ask: (api: NonNullable<SimulatedNode['api']>) => Promise<Uint8Array>,
  ): Promise<Answer> {
    const { api, life } = node;
    if (api === null || life === null) return null;
    this.story.tell(who, `→ ${node.host}  ${what}`);
    const { answer, error } = await this.#ended(ask(api), life, `${what} on ${node.host}`);
    this.story.tell(who, `← ${node.host}  ${what}: ${error ?? 'done'}`);
    return answer;
  }

  #ended(call: Promise<Uint8Array>, life: Life, what: string): Promise<{ answer: Answer; error: string | null }> {
    return new Promise((resolve) => {
      let ended = false;
      let lateMs = this.world.nowMs + TIMEOUT_MS + GRACE_MS;
      const end = (answer: Answer, error: string | null) => {
        ended = true;
        resolve({ answer, error });
      };
      const watch = () => {
        if (ended) return;
        if (!life.alive) return end(null, 'the node is gone');
        if (life.paused) lateMs = this.world.nowMs + TIMEOUT_MS + GRACE_MS;
        if (this.world.nowMs > lateMs) {
          this.violation(`${what} has not ended ${GRACE_MS} ms after its timeout`);
          return end(null, 'no end');
        }
        this.world.after(500, watch);
      };
      this.world.after(500, watch);
      call.then(
        (answer) => end(answer, null),
        (error: unknown) => {
          const { code, detail } = errorFacts(error);
          const isMissing = code === 'notFound' && /^No point with id/.test(detail);
          // A node that has just joined does not know of it yet.
          const isEarly = code === 'notFound' && /^Collection .* doesn't exist/.test(detail);
          if (!isMissing && !isEarly && !FAILURES.has(code) && life.alive)
            this.violation(`${what} failed: ${code}: ${detail}${error instanceof Error ? `\n${error.stack}` : ''}`);
          end(isMissing ? 'notFound' : /nothing was written/.test(detail) ? 'refused' : null, `${code}: ${detail}`);
        },
      );
    });
  }
}

interface Shown {
  readonly id: number;
  readonly score?: number;
  readonly payload: { readonly value: string };
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
