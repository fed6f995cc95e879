/**
 * Clients that write, read and search points of one collection through any node, each its own ids, one request after the other and
 * again by another node when one fails; they remember what each point must be. They are the unmodified ones: every other one asks
 * through gRPC.
 */

import type { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import type { RandomNumbers } from '../../../ops/random.js';
import { type Args, Doors, type OperationName, type Outcome, outcome } from '../clients/doors.js';
import { AskingClients, pause } from './asking.js';

export const POINTS = 'points';
const DIM = 4;
const IDS_PER_CLIENT = 60;
/** Seconds that the cluster may take for one try. */
const TIMEOUT_S = 5;
/** Statuses of REST and codes of gRPC that may come while nodes fail: unavailable, timed out, busy; and connections that are lost. */
const EXPECTED: ReadonlySet<number> = new Set([503, 408, 429, 1, 4, 8, 10, 13, 14]);
/** A request that has not succeeded by any of its tries within so long has failed. */
const RETRIES_MS = 30_000;
const RETRY_PAUSE_MS = 100;

export interface PointTotals {
  writes: number;
  reads: number;
  searches: number;
  tries: number;
  /** Requests that no try of was answered well. */
  failed: number;
  /** Reads that gave a value of a write whose answer did not come, after a later write was acknowledged: it was carried out late. */
  late: number;
  /** Errors of connections that the clients for gRPC had left, or had just opened, when a node went. */
  lostSessions: number;
  slowestMs: number;
}

interface Point {
  /** The newest acknowledged stamp; null: deleted, or never written. */
  stamp: number | null;
  /** Stamps (null: a deletion) of tries of which nobody said what became of them. */
  readonly open: Set<number | null>;
  /** All that was ever written. */
  readonly written: Set<number | null>;
}

interface Shown {
  readonly id: number;
  readonly version?: number;
  readonly score?: number;
  readonly payload: { readonly client: number; readonly stamp: number };
}

/** The vector that a point has with a stamp. */
function vectorOf(id: number, stamp: number): number[] {
  return Array.from({ length: DIM }, (_, at) => ((id * 31 + stamp * 17 + at * 7) % 101) / 4);
}

export class PointClients extends AskingClients {
  readonly totals: PointTotals = { writes: 0, reads: 0, searches: 0, tries: 0, failed: 0, late: 0, lostSessions: 0, slowestMs: 0 };
  /** By number of the node. */
  private readonly doors: ReadonlyMap<number, Doors>;
  /** By client. */
  readonly points: Map<number, Point>[] = [];
  private stamp = 1;

  constructor(
    cluster: LocalCluster,
    random: RandomNumbers,
    story: (line: string) => void,
    private readonly shards: number,
  ) {
    super(cluster, random, story);
    this.doors = new Map(cluster.nodes.map((node) => [node.number, new Doors(node)]));
  }

  async prepare(): Promise<void> {
    const body = { vectors: { size: DIM, distance: 'Dot' }, shard_number: this.shards, replication_factor: 2, write_consistency_factor: 1 };
    const { client } = this.cluster.nodes[0] as LocalNode;
    await client.result('PUT', `/collections/${POINTS}?timeout=60`, body);
    await client.result('PUT', `/collections/${POINTS}/index?wait=true`, { field_name: 'client', field_schema: 'integer' });
  }

  protected override async client(client: number): Promise<void> {
    const own = new Map<number, Point>();
    for (let at = 0; at < IDS_PER_CLIENT; at++)
      own.set(client * IDS_PER_CLIENT + at, { stamp: null, open: new Set(), written: new Set([null]) });
    this.points[client] = own;
    while (!this.stopped) {
      const draw = this.random.unit();
      if (draw < 0.35) await this.upsert(client, own);
      else if (draw < 0.46) await this.touch(client, own);
      else if (draw < 0.55) await this.remove(client, own);
      else if (draw < 0.8) await this.retrieve(client, own);
      else await this.search(client, own);
    }
  }

  private async upsert(client: number, own: Map<number, Point>): Promise<void> {
    const ids = this.someOf([...own.keys()], 1 + this.random.integer(12));
    const stamp = this.stamp++;
    const points = ids.map((id) => ({ id, vector: vectorOf(id, stamp), payload: { client, stamp } }));
    await this.write(client, 'upsert_points', { points }, own, ids, stamp);
  }

  private async remove(client: number, own: Map<number, Point>): Promise<void> {
    const ids = this.someOf([...own.keys()], 1 + this.random.integer(4));
    await this.write(client, 'delete_points', { points: ids }, own, ids, null);
  }

  /** Changes a part of what is there, whatever that is: a replica with an old point must not take this for the new one. */
  private async touch(client: number, own: Map<number, Point>): Promise<void> {
    const ids = this.someOf([...own.keys()], 1 + this.random.integer(12));
    const filter = { must: [{ has_id: ids }] };
    this.totals.writes += 1;
    await this.tried(client, 'set_payload', { payload: { touched: this.stamp++ }, filter, wait: true });
  }

  private async write(
    client: number,
    operation: OperationName,
    args: Args,
    own: Map<number, Point>,
    ids: readonly number[],
    stamp: number | null,
  ): Promise<void> {
    const points = ids.map((id) => own.get(id) as Point);
    for (const point of points) point.written.add(stamp);
    this.totals.writes += 1;
    const answer = await this.tried(client, operation, { ...args, wait: true }, () => {
      for (const point of points) point.open.add(stamp);
    });
    if (answer !== null) for (const point of points) point.stamp = stamp;
  }

  private async retrieve(client: number, own: Map<number, Point>): Promise<void> {
    const ids = this.someOf([...own.keys()], 10);
    const consistency = this.anyConsistency();
    this.totals.reads += 1;
    const answer = await this.tried(client, 'get_points', { ids, with_payload: true, ...consistency });
    if (answer === null) return;
    this.compare(`get_points ${JSON.stringify(consistency)}`, own, ids, answer as Shown[], consistency !== null);
  }

  /** All points of the client, best first. */
  private async search(client: number, own: Map<number, Point>): Promise<void> {
    const consistency = this.anyConsistency();
    const query = Array.from({ length: DIM }, () => this.random.integer(100) / 4);
    const filter = { must: [{ key: 'client', match: { value: client } }] };
    const args = { query, filter, limit: 2 * IDS_PER_CLIENT, with_payload: true, params: { exact: true }, ...consistency };
    const what = `query_points ${JSON.stringify(consistency)}`;
    this.totals.searches += 1;
    const answer = await this.tried(client, 'query_points', args);
    if (answer === null) return;
    const { points } = answer as { points: Shown[] };
    points.forEach(({ id, payload, score = Number.NaN }, at) => {
      const expected = vectorOf(id, payload.stamp).reduce((sum, part, axis) => sum + part * (query[axis] as number), 0);
      if (Math.abs(score - expected) > 1e-3 * Math.max(1, expected))
        this.wrong(`${what} gave point ${id} the score ${score} instead of ${expected}`);
      const before = points[at - 1]?.score ?? Number.POSITIVE_INFINITY;
      if (score > before) this.wrong(`${what} gave ${score} behind ${before}`);
      if (payload.client !== client) this.wrong(`${what} gave point ${id}, which the filter leaves out`);
    });
    this.compare(what, own, [...own.keys()], points, consistency !== null);
  }

  /** complete: no acknowledged write may be missed. */
  private compare(what: string, own: Map<number, Point>, ids: readonly number[], shown: readonly Shown[], complete: boolean): void {
    const stamps = new Map(shown.map(({ id, payload }) => [id, payload.stamp]));
    if (stamps.size !== shown.length) this.wrong(`${what} gave a point twice`);
    for (const id of ids) {
      const seen = stamps.get(id) ?? null;
      const { open, stamp, written } = own.get(id) as Point;
      if (!written.has(seen)) this.wrong(`${what} gave point ${id} as ${seen}, which nobody wrote`);
      else if (complete && seen !== stamp && !open.has(seen))
        this.wrong(`${what} gave point ${id} as ${seen} where ${stamp} was acknowledged`);
      else if (complete && seen !== stamp && stamp !== null && seen !== null && seen < stamp) this.totals.late += 1;
    }
  }

  /** What an answer must say of all points at the end, read by `query` from whichever replicas are there. */
  checkAll(what: string, shown: readonly { readonly id: number; readonly stamp: number }[]): void {
    const stamps = new Map(shown.map(({ id, stamp }) => [id, stamp]));
    if (stamps.size !== shown.length) this.wrong(`${what} gave a point twice`);
    for (const own of this.points) {
      for (const [id, { open, stamp }] of own) {
        const seen = stamps.get(id) ?? null;
        if (seen !== stamp && !open.has(seen)) this.wrong(`${what} gave point ${id} as ${seen} where ${stamp} was acknowledged`);
      }
    }
  }

  /** The result; tries again by other nodes until one answers well, null when none does in time. left: nobody knows what became of a try. */
  private async tried(client: number, operation: OperationName, args: Args, left: () => void = () => {}): Promise<unknown> {
    const began = performance.now();
    let told = '';
    while (performance.now() - began < RETRIES_MS) {
      const node = this.anyNode();
      if (node !== null) {
        this.totals.tries += 1;
        const answer = await this.ask(node, client, operation, args);
        if (answer !== null && 'result' in answer) {
          this.totals.slowestMs = Math.max(this.totals.slowestMs, Math.round(performance.now() - began));
          return answer.result;
        }
        told = answer === null ? 'no answer' : `${answer.failed} ${answer.message.slice(0, 300)}`;
        this.story(`${operation} ${JSON.stringify(args).slice(0, 40)} of client ${client} at node ${node.number}: ${told}`);
        // Several shards may have taken their parts whatever the answer says.
        left();
        if (answer !== null && !EXPECTED.has(answer.failed)) this.wrong(`${operation} at node ${node.number}: ${told}`);
      }
      await pause(RETRY_PAUSE_MS);
    }
    this.totals.failed += 1;
    this.story(`!!! ${operation} of client ${client} failed for ${RETRIES_MS} ms; last: ${told}`);
    return null;
  }

  private async ask(node: LocalNode, client: number, operation: OperationName, args: Args): Promise<Outcome | null> {
    const doors = this.doors.get(node.number) as Doors;
    const whole = { ...args, timeout: TIMEOUT_S };
    const asked = () => (client % 2 === 0 ? doors.rest(operation, POINTS, whole) : doors.grpc(operation, POINTS, whole));
    return this.inTime(node, `${operation} of client ${client}`, () => outcome(asked())).catch(() => null);
  }

  private anyConsistency(): { consistency: string } | null {
    const consistency = [null, 'majority', 'quorum', 'all'][this.random.integer(4)] as string | null;
    return consistency === null ? null : { consistency };
  }

  private someOf(ids: number[], count: number): number[] {
    return Array.from({ length: count }, () => ids.splice(this.random.integer(ids.length), 1)[0] as number);
  }
}
