/** Writes of a shard's leader, in their order: those that it makes here and those that another replica's sends. */

import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { invariant, rethrowBroken } from '../../protocols/invariant.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { LogTag, TimedWrite } from '../../protocols/model/shard-log.js';
import { foundUnknown } from '../../protocols/model/unknown-fields.js';
import type { UpdateShape } from '../../protocols/model/update.js';
import { type HardwareUsage, noUsage } from '../../protocols/model/usage.js';
import type { WriteHop } from '../../protocols/model/write-hop.js';
import type { LoggedOperation } from '../../protocols/update-codec.js';
import { dropBytes } from '../memory/drop-bytes.js';
import type { HeldValues } from '../memory/held-memory.js';
import { type KnownLog, newEntries, nextTags } from '../replica/follow.js';
import type { AppliedUpdate, NumberedOperation, Pause } from '../replica/operations.js';
import type { ReplicaStore } from '../replica/store.js';
import { decodedBytes } from '../requests/body-values.js';
import { decodeEncoded, decodeShared, decodeWriteRequest } from '../requests/decode-update.js';
import { ringsOf } from '../sharding/keys.js';
import { neededPoints } from '../sharding/split-operation.js';
import { traceNowUs } from '../threads/clock.js';
import { turnTooLate } from '../threads/deadline.js';
import type { ToWriter, WrittenTags } from '../threads/messages.js';

export type WriteMessage = Extract<ToWriter, { kind: 'write' | 'append' }>;

/** What waits for a message to be done. */
interface Planned {
  readonly id: number;
  readonly until: 'logged' | 'applied';
  /** That are to be logged. */
  readonly numbered: readonly NumberedOperation[];
  /** Whether one of them fails, and the log has nothing in its place, shows only when it is applied. */
  readonly mayFail: boolean;
  readonly answer: (outcomes: ReadonlyMap<number, AppliedUpdate>) => WrittenTags | LogTag;
  readonly usage: HardwareUsage | null;
}

export interface WriteClock {
  /** As deadlines count, in milliseconds. */
  now(): number;
  /** The date, in milliseconds. */
  dateMs(): number;
}

export interface WriteEvents {
  answer(id: number, value: WrittenTags | LogTag, usage: HardwareUsage | null): void;
  fail(id: number, error: unknown): void;
  /** Before the first answer that says so. */
  applied(): void;
  /** A measured write is answered before it is applied. */
  unanswered(usage: HardwareUsage): void;
}

/**
 * Carries out messages that wait together, in their order: up to the last that is to be logged only in a first transaction, the others with
 * all that is applied in a second one. Where the first fails, so do all, as each follows the one before it. With a leader's operations that
 * may fail all are logged and applied in one. Pauses where others may have their turn: see `Operations.applying`.
 */
export function* writeGroup(
  store: ReplicaStore,
  group: readonly WriteMessage[],
  clock: WriteClock,
  values: HeldValues,
  on: WriteEvents,
): Generator<Pause, void> {
  try {
    if (store.operations.waiting > 0) yield* store.operations.applying();
  } catch (error) {
    rethrowBroken(error);
    for (const { id } of group) on.fail(id, refusedFor(error));
    return;
  }
  const planned = planAll(store, group, clock, values, on);
  const mayFail = planned.some((plan) => plan.mayFail);
  const isWaiting = ({ until }: Planned): boolean => mayFail || until === 'applied';
  const waiting = planned.filter(isWaiting);
  const first = planned.findLastIndex((plan) => !isWaiting(plan)) + 1;
  const numberedOf = (plans: readonly Planned[]): NumberedOperation[] => plans.flatMap(({ numbered }) => numbered);
  try {
    store.operations.log(numberedOf(planned.slice(0, first)));
  } catch (error) {
    rethrowBroken(error);
    for (const { id } of planned) on.fail(id, error);
    return;
  }
  for (const plan of planned) {
    if (isWaiting(plan)) continue;
    const { answer, id, usage } = plan;
    if (usage !== null) on.unanswered(usage);
    on.answer(id, answer(NO_OUTCOMES), usage === null ? null : noUsage());
  }
  try {
    const all = yield* store.operations.applying(numberedOf(planned.slice(first)));
    const outcomes = new Map(all.map((outcome) => [outcome.operation, outcome]));
    on.applied();
    for (const { answer, id, usage } of waiting) on.answer(id, answer(outcomes), usage);
  } catch (error) {
    rethrowBroken(error);
    for (const { id } of waiting) on.fail(id, error);
  }
}

/** Nothing is logged while what is logged cannot be applied: the log would grow without bound, and nothing of it be seen. */
function refusedFor(error: unknown): TroupeError {
  const { detail } = errorFacts(error);
  return new TroupeError('unavailable', `the write was not begun: ${detail}`, { cause: error, outcome: 'none', retryAfterMs: 1000 });
}

const NO_OUTCOMES: ReadonlyMap<number, AppliedUpdate> = new Map();

function failureOf(numbered: readonly NumberedOperation[], outcomes: ReadonlyMap<number, AppliedUpdate>): TroupeError | null {
  for (const { operation } of numbered) {
    const error = outcomes.get(operation)?.error;
    if (error instanceof TroupeError) return error;
  }
  return null;
}

/** Messages that are refused are answered at once. */
function planAll(store: ReplicaStore, group: readonly WriteMessage[], clock: WriteClock, values: HeldValues, on: WriteEvents): Planned[] {
  const log = new PlannedLog(store);
  const nowMs = clock.now();
  const timeMs = clock.dateMs();
  return group.flatMap((message) => {
    try {
      return message.kind === 'write' ? planWrite(store, message, log, nowMs, timeMs, values) : planAppend(store, message, log);
    } catch (error) {
      rethrowBroken(error);
      on.fail(message.id, notLogged(error));
      return [];
    }
  });
}

/** Nothing of a message that cannot be planned is in the log, even if that is a bug: the shard's leader may go on. */
function notLogged(error: unknown): unknown {
  if (error instanceof TroupeError) return error;
  return new TroupeError('internal', errorFacts(error).detail, { cause: error, outcome: 'none' });
}

function planWrite(
  store: ReplicaStore,
  { as, id, write }: Extract<WriteMessage, { kind: 'write' }>,
  log: PlannedLog,
  nowMs: number,
  timeMs: number,
  values: HeldValues,
): Planned {
  if (write.deadlineMs <= nowMs) throw turnTooLate();
  const startUs = write.hops === undefined ? null : traceNowUs();
  const usage = write.usage === undefined ? null : noUsage();
  if (write.undecoded !== undefined) values.take(decodedBytes('write', write.operations[0] ?? null), 'outOfMemory');
  const { operations: decoded, shape } = decodeWrite(write, store.config.params);
  const tags = nextTags(log.last, as, decoded.length);
  const operations = usage === null ? decoded : decoded.map((operation) => ({ ...operation, usage }));
  store.lead();
  invariant(store.stale === null, 'Bucket-B3', 'a replica that leads has buckets that nobody has compared');
  const numbered = log.add(tags, operations).map((each) => ({ ...each, isLeaders: true, timeMs }));
  const answer = (outcomes: ReadonlyMap<number, AppliedUpdate>): WrittenTags => {
    const found = failureOf(numbered, outcomes);
    // Whoever does not wait for what it comes to is not told that a point is not there, but is told when nothing was logged for want of means.
    const failure = write.until === 'logged' && found?.code === 'notFound' ? null : found;
    // Those behind one that fails hang on it.
    const failed = tags.findIndex((tag) => outcomes.get(tag.index)?.isNothing === true);
    const carriedOut = failed === -1 ? tags.length : failed;
    return {
      ...(shape === null ? {} : { shape }),
      ...(startUs === null ? {} : { hop: writerHop(startUs, tags.length) }),
      tags,
      timeMs,
      carriedOut,
      failure: failure && { ...errorFacts(failure), reason: 'failedOnApply', outcome: failure.outcome },
    };
  };
  const mayFail = decoded.some(({ operation }) => neededPoints(operation).length > 0);
  const until = write.until === 'logged' ? 'logged' : 'applied';
  return { id, until, numbered, mayFail, answer, usage };
}

/** With other writes of its group: what they take is in it, too. */
function writerHop(startUs: number, operations: number): WriteHop {
  return { name: 'writer', startUs, endUs: traceNowUs(), facts: { 'thread.name': 'writer', 'troupe.operations': operations }, hops: [] };
}

interface DecodedWrite {
  readonly operations: readonly LoggedOperation[];
  /** Null for operations that were encoded elsewhere. */
  readonly shape: UpdateShape | null;
}

const UNKEYED = [{ id: 0, key: null }];

function decodeWrite({ operations, undecoded }: TimedWrite, params: CollectionParams): DecodedWrite {
  if (undecoded === undefined) return { operations: decodeEncoded(operations, params), shape: null };
  const request = { ...undecoded, body: operations[0] ?? null };
  const { failure, listed, operations: asked, parts, shardKeys } = decodeWriteRequest(undecoded.operation, request, params);
  if (request.body !== null) dropBytes(request.body);
  // Shards with keys get encoded parts of requests, so no operation here may name a key.
  asked.forEach((operation, at) => {
    ringsOf(UNKEYED, params.sharding_method === 'custom', operation, shardKeys[at] ?? null);
  });
  return {
    operations: asked.map((operation, at) => ({ operation, chained: at > 0 })),
    shape: { parts, listed, failure: failure === null ? null : errorFacts(failure), ...foundUnknown(request.unknownFields) },
  };
}

function planAppend(
  store: ReplicaStore,
  { entries, id, previous, until }: Extract<WriteMessage, { kind: 'append' }>,
  log: PlannedLog,
): Planned {
  const added = newEntries(log, previous, entries);
  const operations = decodeShared(
    added.map(({ operation }) => operation),
    store.config.params,
  );
  const numbered = log
    .add(
      added.map(({ tag }) => tag),
      operations,
    )
    .map((each, at) => ({ ...each, timeMs: added[at]?.timeMs }));
  const { last } = log;
  return { id, until, numbered, mayFail: false, answer: () => last, usage: null };
}

/** The log as it will be when what is planned is done. */
class PlannedLog implements KnownLog {
  last: LogTag;
  readonly base: LogTag;
  private readonly added = new Map<number, LogTag>();

  constructor(private readonly store: ReplicaStore) {
    ({ last: this.last, base: this.base } = store.log.position);
  }

  tagOf(index: number): LogTag | null {
    return this.added.get(index) ?? this.store.wal.tagOf(index);
  }

  add(tags: readonly LogTag[], operations: readonly LoggedOperation[]): NumberedOperation[] {
    for (const tag of tags) this.added.set(tag.index, tag);
    this.last = tags.at(-1) ?? this.last;
    return tags.map((by, at) => ({ operation: by.index, by, logged: operations[at] as LoggedOperation }));
  }
}
