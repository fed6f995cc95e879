/**
 * Sends the parts of a write to the leaders of their shards, on any node. A part that was definitely not executed is tried again by the
 * newest agreed state until the request's time is over. A part that may have been executed is never tried again: a second execution could
 * undo what another client wrote in between.
 */

import type { DataAnswer, DataCall, ShardAddress } from '../../cluster/data-messages.js';
import { serving } from '../../cluster/replication/required.js';
import { errorFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { ShardWrite } from '../../protocols/model/shard-log.js';
import type { Written } from '../../protocols/model/update.js';
import { addUsage } from '../../protocols/model/usage.js';
import { type HopNotes, movedHop } from '../../protocols/model/write-hop.js';
import { traceNowUs } from '../../storage/threads/clock.js';
import type { EncodedPart, RawRequest, WriteOperation } from '../../storage/threads/messages.js';
import type { Assignment } from '../shard-log/assignments.js';
import { notedHop } from './noted-hop.js';
import { mayBeWritten, type Retry, retryOf } from './retries.js';
import type { Routes } from './routes.js';
import { resharded } from './shard-map.js';
import type { ShardWriter } from './sharded-write.js';

export interface LeaderWrite {
  readonly collection: string;
  readonly uid: number;
  /** The shard map version that the request was split by. */
  readonly shardMapVersion: number;
  readonly operation: WriteOperation;
  readonly request: RawRequest;
}

/** Longest pause before a shard without a leader, or with another one than was asked, is looked up again; the first pauses are shorter. */
const LOOK_AGAIN_MS = 100;
const LOOK_AGAIN_MS_MIN = 10;
/** How long a write is tried at a leader that is `busy`: after this the replica that it waits for is back, or Dead. */
const BUSY_PATIENCE_MS = 5000;
/** The leader ends a write at its deadline with a message that says more than the caller's timeout. */
const GRACE_MS = 250;

export class LeaderWriter implements ShardWriter {
  readonly #writes: Promise<unknown>[] = [];
  #mayHaveWritten = false;

  constructor(
    private readonly routes: Routes,
    private readonly asked: LeaderWrite,
  ) {}

  check(shardId: ShardId): void {
    const assignment = this.#assignmentOf(this.#addressOf(shardId));
    if (assignment.leader === null && !canHaveLeader(assignment)) throw noLeader(shardId, assignment);
    // The leader checks this again, but by then other shards may have taken their parts.
    const active = serving(assignment);
    if (active >= assignment.writeFactor) return;
    const detail = `shard ${shardId} has ${active} of the ${assignment.writeFactor} active replicas that write_consistency_factor asks for: nothing was written`;
    throw new TroupeError('unavailable', detail, { retryAfterMs: 1000 });
  }

  /** Waits until no part of the request is under way. Returns whether some part was, or may have been, executed. */
  async mayHaveWritten(): Promise<boolean> {
    await Promise.allSettled(this.#writes);
    return this.#mayHaveWritten;
  }

  write(part: EncodedPart, until: ShardWrite['until']): Promise<Written> {
    const written = this.#write(part, until);
    this.#writes.push(written);
    return written;
  }

  #write(part: EncodedPart, until: ShardWrite['until']): Promise<Written> {
    const { shardId } = part;
    const notes = this.asked.request.explain?.trace?.hops;
    return notedHop(notes, `shard ${shardId}`, { 'troupe.shard_id': shardId }, (hops) => this.#writeNoted(part, until, hops));
  }

  async #writeNoted({ operations, shardId }: EncodedPart, until: ShardWrite['until'], hops: HopNotes | undefined): Promise<Written> {
    const { operation, request } = this.asked;
    const shard = this.#addressOf(shardId);
    const measured = request.usage !== undefined;
    const { shardMapVersion } = this.asked;
    const traced = hops === undefined ? {} : { isTraced: true };
    let sentUs = 0;
    const answer = await this.#ask(shard, (timeoutMs) => {
      if (hops !== undefined) sentUs = traceNowUs();
      return { kind: 'write', shard, operation, operations, until, timeoutMs, measured, shardMapVersion, ...traced };
    });
    if (answer.kind !== 'written') throw unexpected(answer);
    // How long the way there took is not known: half of what the peer did not have.
    if (answer.hop !== undefined) hops?.push(movedHop(answer.hop, sentUs + (traceNowUs() - sentUs - answer.hop.endUs) / 2));
    this.#mayHaveWritten = true;
    if (request.usage !== undefined && answer.usage !== null) addUsage(request.usage, answer.usage);
    return { numbers: answer.numbers, status: answer.status };
  }

  async missing(shardId: ShardId, ids: readonly PointId[]): Promise<PointId | null> {
    const shard = this.#addressOf(shardId);
    const first = await this.#missing(shard, ids);
    if (first === null) return null;
    // A leader that was cut off does not know of later writes. One that passes a barrier still leads, and then checks again (Log-L12).
    const { shardMapVersion } = this.asked;
    await this.#ask(shard, (timeoutMs) => ({ kind: 'barrier', shard, timeoutMs, shardMapVersion }));
    return this.#missing(shard, ids);
  }

  async #missing(shard: ShardAddress, ids: readonly PointId[]): Promise<PointId | null> {
    const { shardMapVersion } = this.asked;
    const answer = await this.#ask(shard, (timeoutMs) => ({ kind: 'missing', shard, ids, timeoutMs, shardMapVersion }));
    if (answer.kind !== 'missing') throw unexpected(answer);
    return answer.id;
  }

  async #ask(shard: ShardAddress, make: (timeoutMs: number) => DataCall): Promise<DataAnswer> {
    const { deadlineMs } = this.asked.request;
    const { clock } = this.routes;
    const patientMs = clock.nowMs() + BUSY_PATIENCE_MS;
    for (let pauseMs = LOOK_AGAIN_MS_MIN; ; pauseMs = Math.min(LOOK_AGAIN_MS, 2 * pauseMs)) {
      this.#checkShardMapVersion();
      const assignment = this.#assignmentOf(shard);
      const { leader } = assignment;
      const leftMs = deadlineMs - clock.nowMs();
      let refusal: TroupeError;
      if (leader === null) {
        refusal = noLeader(shard.shardId, assignment);
        if (!canHaveLeader(assignment)) throw refusal;
      } else {
        const call = make(Math.max(1, leftMs));
        try {
          return await this.routes.call(leader, call, Math.max(1, leftMs) + GRACE_MS);
        } catch (error) {
          const retry = retryOf(error, call.kind !== 'write');
          if (call.kind === 'write' && mayBeWritten(error)) this.#mayHaveWritten = true;
          if (!isTriedAgain(retry, assignment, clock.nowMs() < patientMs)) throw told(error, shard.shardId);
          refusal = retry === 'patiently' ? (error as TroupeError) : this.#refusalOf(error, shard.shardId, leader);
        }
      }
      if (leftMs <= LOOK_AGAIN_MS) throw refusal;
      await this.routes.changed(shard, assignment, pauseMs);
    }
  }

  /** The error for the client. If one of two nodes is away, it says what to do, as waiting may not help. */
  #refusalOf(error: unknown, shardId: ShardId, leader: PeerId): TroupeError {
    if (reasonOf(error) !== 'notReached' || !this.routes.assignments.isAloneWithout(leader)) return shownRefusal(error, shardId);
    const detail =
      `peer ${leader} leads it and cannot be reached, and a cluster of two nodes has no majority without it: restart it, ` +
      'or, if it is lost for good, restart this node with `--reinit --uri`';
    return shownRefusal(new TroupeError('unavailable', detail, { cause: error }), shardId);
  }

  /** Checks that the shard map has not changed since the request was split. Errors: `unavailable` (`shardMapChanged`). */
  #checkShardMapVersion(): void {
    const { collection, shardMapVersion, uid } = this.asked;
    const record = this.routes.assignments.agreed?.collections.get(collection);
    if (record?.uid === uid && record.shardMapVersion !== shardMapVersion) throw resharded(collection, this.#mayHaveWritten);
  }

  /** The agreed state of a shard. Errors: `notFound` if the collection has been deleted. */
  #assignmentOf(shard: ShardAddress): Assignment {
    const assignment = this.routes.assignments.of(shard);
    if (assignment !== null) return assignment;
    throw new TroupeError('notFound', `shard ${shard.shardId} of collection ${shard.collection} no longer exists`);
  }

  #addressOf(shardId: ShardId): ShardAddress {
    return { collection: this.asked.collection, uid: this.asked.uid, shardId };
  }
}

/** Whether another replica can follow a leader that is missing or cannot be reached. */
function canHaveLeader({ leader, replicas }: Assignment): boolean {
  return [...replicas].some(([peer, state]) => peer !== leader && (state === 'Active' || state === 'Initializing'));
}

function isTriedAgain(retry: Retry, assignment: Assignment, isPatient: boolean): boolean {
  switch (retry) {
    case 'never':
      return false;
    case 'again':
      return true;
    case 'whenLedElsewhere':
      return canHaveLeader(assignment);
    case 'patiently':
      return isPatient;
    default:
      return retry satisfies never;
  }
}

function noLeader(shardId: ShardId, { replicas }: Assignment): TroupeError {
  const states = [...replicas].map(([peer, state]) => `peer ${peer} is ${state}`).join(', ') || 'it is on no peer';
  return new TroupeError('unavailable', `shard ${shardId} takes no writes: no replica of it is Active (${states})`, { retryAfterMs: 1000 });
}

function shownRefusal(error: unknown, shardId: ShardId): TroupeError {
  return new TroupeError('unavailable', `shard ${shardId} takes no writes: ${errorFacts(error).detail}`, {
    cause: error,
    retryAfterMs: 1000,
  });
}

/** The error that the client gets when it ends the write. */
function told(error: unknown, shardId: ShardId): unknown {
  switch (reasonOf(error)) {
    case 'notReached':
      return shownRefusal(error, shardId);
    case 'answerLost': {
      const { code, detail, outcome } = error as TroupeError;
      const after = code === 'timeout' ? {} : { retryAfterMs: 1000 };
      return new TroupeError(code, `shard ${shardId}: ${detail}`, { cause: error, outcome, ...after });
    }
    default:
      return error;
  }
}

export function unexpected({ kind }: DataAnswer): Error {
  return new Error(`a peer has answered with ${kind}`);
}
