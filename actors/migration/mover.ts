/**
 * One shard's part of a stage in which points go to other shards, done by its leader's node (see cluster/apply/migration.ts).
 *
 * Its rules are Migr-D4 to Migr-D6 in actors/README.md.
 */

import { type Migration, type MigrationTask, migrationOf } from '../../cluster/apply/migration.js';
import { readingPeers } from '../../cluster/apply/resharding.js';
import { type DataAnswer, type DataCall, LostAnswer } from '../../cluster/data-messages.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import { noProgress, type TransferProgress } from '../../cluster/transfer/progress.js';
import { errorFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import { parseJson } from '../../protocols/json.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import { decodeFilter } from '../../protocols/rest/filter.js';
import type { AnswerOf, Ask, LeavingAsk, OwnedAsk } from '../../storage/threads/portion.js';
import { decodePortionAnswer, encodePortion } from '../../storage/threads/portion-codec.js';
import type { Routes } from '../requests/routes.js';

export interface MoverParts {
  readonly routes: Routes;
  /** Gives shards the indexes of payload keys that others have. */
  readonly indexAs: (collection: string, from: ShardId, to: ShardId) => Promise<void>;
  /** Resolves when the shard's part is agreed to be done. */
  readonly finish: (duty: MigrationTask) => Promise<void>;
  /** How far it is; null: it is over, or another node's. */
  readonly show: (duty: MigrationTask, progress: TransferProgress | null) => void;
}

interface Asked<Kind extends Ask['kind']> {
  readonly answer: AnswerOf[Kind];
  /** The index of the last operation that it takes in. */
  readonly position: number;
}

/** A pass that has copied no more points is followed by the switch, during which writes wait for the next one. */
const SMALL_PASS = 500;
const PASSES_MAX = 20;
const CALL_MS = 60_000;
const AGAIN_MS = 50;

/** What is remembered of the copies of a shard in its leader's term, over all stages and tries. */
export interface CopyMemory {
  /** The version up to which its points are copied, as long as this process knows. */
  floor: number;
  /** Of the last call (Migr-D4). */
  sequence: number;
}

export class Mover {
  #progress: TransferProgress;

  constructor(
    private readonly parts: MoverParts,
    private readonly duty: MigrationTask,
    private readonly memory: CopyMemory,
    private readonly isOver: () => boolean,
  ) {
    this.#progress = noProgress('stream_records', duty.stage, parts.routes.clock.nowMs());
  }

  /** Resolves when the stage is done here, or is not this node's any more. Errors: any; another try may do. */
  async run(): Promise<void> {
    try {
      this.#show({});
      await this.#everyoneKnows();
      if (this.duty.stage === 'cleaning') await this.#clean();
      else await this.#copy();
      await this.parts.finish(this.duty);
    } catch (error) {
      if (!(error instanceof Over)) throw error;
    }
  }

  /** For those who look at it. */
  failed(error: unknown): void {
    this.#show({ failures: this.#progress.failures + 1, cause: errorFacts(error).detail });
  }

  #show(change: Partial<TransferProgress>): void {
    this.#progress = { ...this.#progress, ...change };
    if (!this.isOver()) this.parts.show(this.duty, this.#progress);
  }

  async #copy(): Promise<void> {
    const { collection, shardId, stage } = this.duty;
    const { flow } = this.#agreed();
    if (flow.mirrors && shardId === Math.min(...flow.source))
      for (const target of flow.receiving.filter((id) => !flow.source.includes(id))) await this.parts.indexAs(collection, shardId, target);
    // What was taken before the switch began is copied, too.
    const index = await this.#settled(shardId);
    await this.#showTotal(index);
    for (let pass = 1; ; pass++) {
      const { floor, points } = await this.#pass(this.memory.floor, index);
      const isLast = stage === 'switching' || points <= SMALL_PASS || pass >= PASSES_MAX;
      if (isLast && flow.mirrors) for (const target of this.#targets()) await this.#removeGone(target, index);
      this.memory.floor = floor;
      if (isLast) return;
    }
  }

  /** Copies points with a higher version than `after`. floor: all with a version up to it are copied. */
  async #pass(after: number, index: number): Promise<{ readonly floor: number; readonly points: number }> {
    const { self } = this;
    const { shardId } = this.duty;
    let floor = Number.POSITIVE_INFINITY;
    let points = 0;
    let from: PointId | null = null;
    do {
      const ring = this.#agreed().flow.target;
      const ask: LeavingAsk = { kind: 'leaving', ring, filter: this.#filter(), after, from };
      const { answer, position }: Asked<'leaving'> = await this.#ask(() => self, shardId, ask, index);
      floor = Math.min(floor, position);
      for (const part of answer.parts) {
        await this.#write(part.shard, 'upsertPoints', part.operation);
        points += part.points;
        const { bytes, sent, total } = this.#progress;
        // What changed meanwhile is sent again.
        const now = { sent: sent + part.points, total: total === 0 ? 0 : Math.max(total, sent + part.points) };
        this.#show({ ...now, bytes: bytes + part.operation.byteLength });
      }
      from = answer.next;
    } while (from !== null);
    return { floor, points };
  }

  /** Removes copies in `target` of points that are not in this shard. */
  async #removeGone(target: ShardId, index: number): Promise<void> {
    const { shardId } = this.duty;
    // Behind everything that a former leader of this shard may have sent there.
    const reached = await this.#settled(target);
    // Writes wait meanwhile, and most often nothing is gone.
    if (this.duty.stage === 'switching' && (await this.#isAsMany(target, index, reached))) return;
    let from: PointId | null = null;
    do {
      const there = await this.#owned(target, { from, countOnly: false }, reached);
      const { count, ids, next } = there.answer;
      if (count > 0) {
        const { answer } = await this.#ask(() => this.self, shardId, { kind: 'gone', filter: this.#filter(), ids }, index);
        if (answer.operation !== null) await this.#write(target, 'deletePoints', answer.operation);
      }
      from = next;
    } while (from !== null);
  }

  /** Whether `target` has as many copies as this shard has points for it. All of these are there. */
  async #isAsMany(target: ShardId, index: number, reached: number): Promise<boolean> {
    const { shardId } = this.duty;
    const countWhole = async (ask: (from: PointId | null) => Promise<Asked<'owned'>>): Promise<number> => {
      let sum = 0;
      let from: PointId | null = null;
      do {
        const { answer }: Asked<'owned'> = await ask(from);
        sum += answer.count;
        from = answer.next;
      } while (from !== null);
      return sum;
    };
    const here = (from: PointId | null) => {
      const ask = {
        kind: 'owned',
        ring: this.#agreed().flow.target,
        owner: target,
        filter: this.#filter(),
        countOnly: true,
        from,
      } as const;
      return this.#ask(() => this.self, shardId, ask, index);
    };
    const [points, copies] = await Promise.all([
      countWhole(here),
      countWhole((from) => this.#owned(target, { from, countOnly: true }, reached)),
    ]);
    return points === copies;
  }

  /** Copies in `target` of points that are this shard's, or were. */
  #owned(target: ShardId, { countOnly, from }: Pick<OwnedAsk, 'countOnly' | 'from'>, reached: number): Promise<Asked<'owned'>> {
    const ask = { kind: 'owned', ring: this.#agreed().flow.source, owner: this.duty.shardId, filter: null, countOnly, from } as const;
    return this.#ask(() => this.#leaderOf(target), target, ask, reached);
  }

  /** Removes points that are another shard's, until there are none. */
  async #clean(): Promise<void> {
    const { shardId } = this.duty;
    for (;;) {
      const index = await this.#settled(shardId);
      let removed = 0;
      let from: PointId | null = null;
      do {
        const ring = this.#agreed().flow.source;
        const { answer }: Asked<'stray'> = await this.#ask(() => this.self, shardId, { kind: 'stray', ring, from }, index);
        if (answer.operation !== null) await this.#write(shardId, 'deletePoints', answer.operation);
        removed += answer.count;
        this.#show({ sent: this.#progress.sent + answer.count });
        from = answer.next;
      } while (from !== null);
      if (removed === 0) return;
    }
  }

  // ---------------------------------------------------------------- what is agreed

  get self(): PeerId {
    return this.parts.routes.assignments.peerId;
  }

  /** Errors: `Over`. */
  #agreed(): { readonly record: CollectionRecord; readonly flow: Migration } {
    const record = this.parts.routes.assignments.agreed?.collections.get(this.duty.collection);
    if (this.isOver() || record?.uid !== this.duty.uid) throw new Over();
    const flow = migrationOf(record);
    if (flow?.startedAt !== this.duty.startedAt) throw new Over();
    return { record, flow };
  }

  #targets(): readonly ShardId[] {
    return this.#agreed().flow.receiving.filter((id) => id !== this.duty.shardId);
  }

  /** Of the points that go. */
  #filter(): Filter | null {
    const { filter } = this.#agreed().flow;
    return filter === null ? null : decodeFilter(parseJson(Buffer.from(filter)), 'filter');
  }

  /** Where all that pass go, it is known how many that are. */
  async #showTotal(index: number): Promise<void> {
    const { source, target } = this.#agreed().flow;
    if (this.duty.stage !== 'copying' || target.some((id) => source.includes(id))) return;
    const { answer } = await this.#ask(() => this.self, this.duty.shardId, { kind: 'count', filter: this.#filter() }, index);
    this.#show({ total: answer.count, sendingSinceMs: this.parts.routes.clock.nowMs() });
  }

  /** Errors: `unavailable` while the shard has no leader. */
  #leaderOf(shardId: ShardId): PeerId {
    const leader = this.#agreed().record.shards.get(shardId)?.leader ?? null;
    if (leader === null) throw new TroupeError('unavailable', `shard ${shardId} has no leader`);
    return leader;
  }

  /** Migr-D6. */
  async #everyoneKnows(): Promise<void> {
    const { collection, shardMapVersion, uid } = this.duty;
    const known = new Set<PeerId>();
    for (;;) {
      const left = readingPeers(this.#agreed().record).filter((peer) => !known.has(peer));
      if (left.length === 0) return;
      await Promise.all(
        left.map(async (peer) => {
          const answer = await this.parts.routes.call(peer, { kind: 'shardMap', collection, uid }, 2000).catch(() => null);
          if (answer?.kind === 'shardMap' && answer.shardMapVersion >= shardMapVersion && answer.showsAll) known.add(peer);
        }),
      );
      if (left.some((peer) => !known.has(peer))) await this.#pause();
    }
  }

  // ---------------------------------------------------------------- calls

  /** The index of a barrier of the shard: all that its leader was given before, and all that a former leader of this one may have sent there (Migr-D4), is behind it. */
  #settled(shardId: ShardId): Promise<number> {
    const { collection, shardMapVersion, uid } = this.duty;
    const shard = { collection, uid, shardId };
    return this.#again(async () => {
      const fence = this.#fence();
      const answer = await this.#call(this.#leaderOf(shardId), { kind: 'barrier', shard, timeoutMs: CALL_MS, shardMapVersion, fence });
      if (answer.kind !== 'barrier') throw new Error(`a peer has answered with ${answer.kind}`);
      return answer.index;
    });
  }

  /** Of a replica that has come to `index` at least. */
  #ask<One extends Ask>(peerOf: () => PeerId, shardId: ShardId, ask: One, index: number): Promise<Asked<One['kind']>> {
    const { collection, shardMapVersion, uid } = this.duty;
    const body = encodePortion({ asks: [ask] }).slice();
    const shards = [shardId];
    return this.#again(async () => {
      const fence = this.#fence();
      const call = { kind: 'read', collection, uid, shards, body, timeoutMs: CALL_MS, measured: false, shardMapVersion, fence } as const;
      const answer = await this.#call(peerOf(), call);
      if (answer.kind !== 'answered') throw new Error(`a peer has answered with ${answer.kind}`);
      const position = answer.positions[0] as number;
      if (position < index) throw new TroupeError('conflict', `shard ${shardId} has not come to ${index} yet`);
      return { answer: decodePortionAnswer(answer.body).answers[0] as AnswerOf[One['kind']], position };
    });
  }

  /** An operation of the copy, in the log of its shard and seen by reads of all its replicas. */
  async #write(shardId: ShardId, operation: WriteOperation, bytes: Uint8Array): Promise<void> {
    const { collection, shardMapVersion, uid } = this.duty;
    const shard = { collection, uid, shardId };
    await this.#again(() => {
      const given = { operations: [bytes], until: 'shown', timeoutMs: CALL_MS, measured: false } as const;
      return this.#call(this.#leaderOf(shardId), { kind: 'write', shard, operation, ...given, shardMapVersion, fence: this.#fence() });
    });
  }

  #fence() {
    this.memory.sequence += 1;
    return { startedAt: this.duty.startedAt, from: this.duty.shardId, term: this.duty.term, sequence: this.memory.sequence };
  }

  #call(peer: PeerId, call: DataCall): Promise<DataAnswer> {
    return this.parts.routes.call(peer, call, CALL_MS + 1000);
  }

  /** Until it does. All of it may be done twice (Migr-D5). Errors: `Over`, and what another try does not change. */
  async #again<Result>(attempt: () => Promise<Result>): Promise<Result> {
    for (;;) {
      this.#agreed();
      try {
        return await attempt();
      } catch (error) {
        if (!isPassing(error)) throw error;
        // A process before this one has led in the same term, and had come further.
        if (reasonOf(error) === 'staleCopy') this.memory.sequence *= 2;
      }
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    this.#agreed();
    await this.parts.routes.pause(AGAIN_MS);
  }
}

/** What is to be done is not this node's any more, or is done. */
class Over extends Error {}

function isPassing(error: unknown): boolean {
  if (error instanceof LostAnswer) return true;
  return error instanceof TroupeError && PASSING.has(error.code);
}

const PASSING: ReadonlySet<string> = new Set(['unavailable', 'conflict', 'busy', 'timeout']);
