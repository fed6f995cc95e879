/**
 * Takes a replica's operations into the log, then into its points (Wal-W1, Wal-W2). Operations that are logged and not applied wait here.
 */

import { errorFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import { invariant, rethrowBroken } from '../../protocols/invariant.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import { type LoggedOperation, NOTHING } from '../../protocols/update-codec.js';
import { AppendError } from '../disk/append-file.js';
import { LmdbError } from '../disk/lmdb-tables.js';
import { measured } from '../disk/meter.js';
import { type Leader, NO_LEADER } from '../wal/log-tags.js';
import type { WriteAheadLog } from '../wal/wal.js';
import { applyOperation, applyPortion, narrowPart } from './apply.js';
import type { Attempts } from './attempts.js';
import { type IsOver, SliceBounds, type WideWork, wideWork } from './slices.js';
import type { Transaction } from './transaction.js';
import type { Unfinished } from './unfinished.js';

/** An operation with its number and the leader that gave it. */
export interface NumberedOperation {
  readonly operation: number;
  readonly by: Leader;
  readonly logged: LoggedOperation;
  /**
   * Set on the leader: in the place of an operation that fails, and of those that depend on it, the log has `NOTHING`. Otherwise another
   * replica, which may lack points for a while, would have to find out by itself whether the operation failed.
   */
  readonly isLeaders?: boolean;
  /** When it is acknowledged: see `ShardEntry`. */
  readonly timeMs?: number | undefined;
}

/** The result of an operation. skipped: the operation that it depends on failed. isNothing: the log has `NOTHING` in its place. */
export type AppliedUpdate = { readonly operation: number; readonly error: TroupeError | 'skipped' | null; readonly isNothing?: boolean };

/** The part of a replica that operations use. */
export interface OperationsHost {
  readonly wal: WriteAheadLog;
  /** Intended size of the log in bytes. */
  readonly walCapacity: number;
  /** A copy of the replica needs the operations that follow it, or a restore to a point in time may. */
  readonly keepsLog: boolean;
  /** Runs `action` in one LMDB transaction. */
  commit<T>(action: () => T): T;
  /** Runs `change` in a transaction (Wal-W3). */
  transact<T>(change: (transaction: Transaction) => T): T;
  /** As `transact` with pauses, between which nothing else changes the replica. */
  transacting<T>(change: (transaction: Transaction) => Generator<Pause, T>): Generator<Pause, T>;
  /** A transaction for reading only. */
  view(): Transaction;
  readonly unfinished: Unfinished | null;
  /** The copy of the files that is being made; null if none is. */
  readonly copying: Promise<unknown> | null;
  /** Begins a slice of an operation. Returns a function that says when its time is over. */
  beginSlice(): IsOver;
  /** Begins a portion of a slice, or of other work in a transaction. Returns a function that says when its time is over. */
  beginPortion(): IsOver;
  /** Called before the first pause of an operation's transactions. */
  holdStats(): void;
  readonly attempts: Pick<Attempts, 'begin' | 'end'>;
  /** Called after operations were applied. */
  applied(): void;
  warn(message: string): void;
}

/** Between two portions and transactions of `applying` others may have their turn. A promise: nothing can go on before it is settled. */
export type Pause = Promise<unknown> | Easing | null;

/**
 * What makes the next step shorter while others work, begun by whoever can wait until it has ended; the next step needs nothing of it. It never
 * rejects.
 */
export class Easing {
  constructor(readonly begin: () => Promise<unknown>) {}
}

/** Settled when what pauses had better go on. */
export async function pauseOver(pause: Pause): Promise<void> {
  await (pause instanceof Easing ? pause.begin() : pause);
}

/** Points that operations name before their transaction ends, so that its memory is bounded. */
const TRANSACTION_POINTS = 10_000;

type CreateField = Extract<UpdateOperation, { kind: 'createFieldIndex' }>;

/** Thrown to end a transaction that has changed nothing: its first operation may touch many points. */
const WIDE = new Error('the operation is applied in slices');

export class Operations {
  /** Operations in the WAL that are acknowledged and not applied yet. */
  private backlog: NumberedOperation[] = [];

  constructor(private readonly host: OperationsHost) {}

  /** Number of operations that are logged and not applied. */
  get waiting(): number {
    return this.backlog.length;
  }

  /** Whether an operation is being applied in slices. */
  isSlicing = false;
  private isOpening = false;

  /** Applies, at opening, operations that the log has and the points lack. Errors: those of `apply`. */
  *replaying(group: readonly NumberedOperation[]): Generator<Pause, void> {
    this.backlog.push(...group);
    this.isOpening = true;
    try {
      yield* this.applying();
    } finally {
      this.isOpening = false;
    }
  }

  /** Forgets waiting operations after a reset of the log. */
  forget(): void {
    this.backlog = [];
  }

  /**
   * Logs operations in ascending order, after all existing ones. They are on disk on return, and are applied by the next `apply`. Errors:
   * `storage`; nothing is logged then.
   */
  log(numbered: readonly NumberedOperation[]): void {
    if (numbered.length === 0) return;
    this.host.commit(() => this.append(numbered));
    this.backlog.push(...numbered);
  }

  private append(numbered: readonly NumberedOperation[]): void {
    for (const { operation, by, logged, timeMs = null } of numbered)
      this.host.wal.append(operation, by, logged, this.host.walCapacity, timeMs);
  }

  /** As `applying`, without pauses. Errors: also `unavailable` if a copy of the files has to be waited for. */
  apply(numbered: readonly NumberedOperation[] = []): AppliedUpdate[] {
    const running = this.applying(numbered);
    for (;;) {
      const { done, value } = running.next();
      if (done) return value;
      if (value === null || value instanceof Easing) continue;
      running.return([]);
      throw new TroupeError('unavailable', 'a copy of the replica is being made: retry later', { retryAfterMs: 1000 });
    }
  }

  /**
   * Applies the logged operations, then logs and applies `numbered`. Each has its effects on disk when its result is known, and all of
   * them are in the log at the end, whatever their results. Returns the results of the operations that were logged before, then those of
   * `numbered`.
   *
   * Operations that touch few points are applied together in one transaction; one that touches many is applied in slices, which are
   * transactions of their own. Whoever runs this may do other work at each pause, but nothing that changes the replica. What it has begun
   * and not ended waits, as what is logged does.
   *
   * What is logged was acknowledged, and is never passed over (Op-O5): where it cannot be applied, that is thrown and it waits. Of a leader's
   * operations that are not logged yet, one that cannot be applied fails alone, and the log has nothing in its place. Errors: `storage`, with
   * the reason `damaged` where another try would meet the same; the first of `numbered` may have been logged and applied then.
   */
  *applying(numbered: readonly NumberedOperation[] = []): Generator<Pause, AppliedUpdate[]> {
    const outcomes: AppliedUpdate[] = [];
    const unlogged = [...numbered];
    let alone = false;
    while (this.backlog.length + unlogged.length > 0) {
      const wasNothing = outcomes.at(-1)?.isNothing === true;
      try {
        const applied = this.applyTogether(unlogged, wasNothing, alone);
        outcomes.push(...(applied ?? [yield* this.applyWide(unlogged)]));
      } catch (error) {
        rethrowBroken(error);
        if (isRefusal(error)) throw error;
        if (alone) outcomes.push(this.refuse(unlogged, error));
        else this.host.warn(`a group of operations failed and is applied one by one: ${textOf(error)}`);
        alone = true;
      }
      if (this.backlog.length + unlogged.length > 0) yield null;
    }
    return outcomes;
  }

  /**
   * Applies the first operations in one transaction, and takes them from the backlog and `unlogged`. alone: only the first one. Returns
   * null, and has done nothing, if the first one may touch many points.
   */
  private applyTogether(unlogged: NumberedOperation[], wasNothing: boolean, alone: boolean): AppliedUpdate[] | null {
    if (this.host.unfinished !== null) return null;
    const logged = alone ? this.backlog.slice(0, 1) : this.backlog;
    const rest = alone ? unlogged.slice(0, 1 - logged.length) : unlogged;
    let outcomes: AppliedUpdate[];
    try {
      outcomes = this.transact((transaction) => this.applyAll(transaction, [...logged, ...rest], logged.length, wasNothing));
    } catch (error) {
      if (error === WIDE) return null;
      throw error;
    }
    this.host.applied();
    const fromBacklog = Math.min(this.backlog.length, outcomes.length);
    this.backlog.splice(0, fromBacklog);
    unlogged.splice(0, outcomes.length - fromBacklog);
    return outcomes;
  }

  /**
   * Runs a transaction that applies what is logged. It is noted at opening, and for operations that may touch any number of points: what ends
   * the process is met again at the next start (Op-O6).
   */
  private transact<T>(change: (transaction: Transaction) => T): T {
    const isNoted = this.noteAttempt();
    try {
      return this.host.transact(change);
    } finally {
      if (isNoted) this.host.attempts.end();
    }
  }

  /** As `transact`, with pauses. */
  private *transacting<T>(change: (transaction: Transaction) => Generator<Pause, T>): Generator<Pause, T> {
    const isNoted = this.noteAttempt();
    try {
      return yield* this.host.transacting(change);
    } finally {
      if (isNoted) this.host.attempts.end();
    }
  }

  private noteAttempt(): boolean {
    const { attempts, unfinished } = this.host;
    const [first] = this.backlog;
    if (first === undefined || !(this.isOpening || this.backlog.some(isUnbounded))) return false;
    attempts.begin(`${first.operation}${unfinished === null ? '' : ` from ${JSON.stringify(unfinished.next)} on`}`);
    return true;
  }

  /**
   * Gives the place in the log of the operation that failed, the first one, to nothing. Errors: why it failed, if it is logged here or
   * elsewhere.
   */
  private refuse(unlogged: NumberedOperation[], reason: unknown): AppliedUpdate {
    const [logged] = this.backlog;
    if (logged !== undefined) throw notApplied(logged.operation, reason);
    const next = unlogged[0] as NumberedOperation;
    if (next.isLeaders !== true) throw notApplied(next.operation, reason);
    // What is damaged stays so, and the next operation may meet it, too.
    if (reasonOf(reason) === 'damaged') throw reason;
    const { operation } = next;
    this.host.warn(`operation ${operation} cannot be applied and is refused: ${textOf(reason)}`);
    this.host.transact((transaction) => {
      this.take(next, true);
      transaction.appliedOperation = operation;
    });
    this.host.applied();
    unlogged.shift();
    const error = new TroupeError('internal', `the operation cannot be applied: ${errorFacts(reason).detail}`, {
      cause: reason,
      outcome: 'none',
    });
    return { operation, error, isNothing: true };
  }

  /** Gives an operation its place in the log, within a transaction. */
  private take(numbered: NumberedOperation, isNothing: boolean): void {
    if (this.isUnread(numbered)) this.host.wal.passOver(numbered.operation);
    else this.append([isNothing ? { ...numbered, logged: NOTHING } : numbered]);
  }

  /**
   * Applies operations in a transaction, up to one that may touch many points. One that depends on the one before it is skipped if that one
   * was not applied, however long ago. loggedCount: so many of them are in the log. wasNothing: the log has nothing in the place of the one
   * before the first.
   */
  private applyAll(
    transaction: Transaction,
    operations: readonly NumberedOperation[],
    loggedCount: number,
    wasNothing: boolean,
  ): AppliedUpdate[] {
    const outcomes: AppliedUpdate[] = [];
    let isNothing = wasNothing;
    let points = 0;
    for (const numbered of operations) {
      if (points >= TRANSACTION_POINTS) break;
      const outcome = this.isSkipped(transaction, numbered, isNothing) ? 'skipped' : applyKnown(transaction, numbered);
      if (outcome === null) break;
      if (typeof outcome === 'number') points += outcome;
      const error = typeof outcome === 'number' ? null : outcome;
      const done = this.end(transaction, numbered, outcomes.length >= loggedCount, error);
      isNothing = done.isNothing === true;
      outcomes.push(done);
    }
    if (outcomes.length === 0) throw WIDE;
    return outcomes;
  }

  private isSkipped(transaction: Transaction, { logged, operation }: NumberedOperation, wasNothing: boolean): boolean {
    const { wal } = this.host;
    const applied = transaction.appliedOperation;
    invariant(operation > applied, 'Wal-W2', () => `operation ${operation} is applied after operation ${applied}`);
    return logged.chained && (wasNothing || (wal.failed > 0 && wal.failed === applied));
  }

  /** Ends an operation within the transaction that applied it. logs: it is not in the log yet. */
  private end(transaction: Transaction, numbered: NumberedOperation, logs: boolean, error: AppliedUpdate['error']): AppliedUpdate {
    const { isLeaders, operation } = numbered;
    const isNothing = error !== null && logs && isLeaders === true;
    if (logs) this.take(numbered, isNothing);
    transaction.appliedOperation = operation;
    if (error !== null && !isNothing) this.host.wal.markFailed(operation);
    return { operation, error, isNothing };
  }

  // ---------------------------------------------------------------- operations that touch many points

  /** Applies the first operation in slices. Errors: those of `apply`; what its slices have done stays then, and the rest waits. */
  private *applyWide(unlogged: NumberedOperation[]): Generator<Pause, AppliedUpdate> {
    this.isSlicing = true;
    try {
      // A copy has no log, so it must not have a part of an operation (Slice-S4).
      while (this.host.copying !== null) yield this.host.copying;
      const numbered = (this.backlog[0] ?? unlogged[0]) as NumberedOperation;
      const { logged, operation } = numbered;
      if (logged.operation.kind === 'createFieldIndex') return yield* this.createField(numbered, logged.operation, unlogged);
      const work = wideWork(this.host.view(), logged.operation);
      const error = yield* this.find(work, numbered);
      const whole = error === null && this.host.unfinished === null ? work.whole() : null;
      if (error === null && whole === null) {
        yield* this.slice(work, numbered, unlogged);
        return { operation, error: null, isNothing: false };
      }
      const logs = this.backlog.length === 0;
      const outcome = this.transact((transaction) => {
        if (whole !== null) measured(logged.usage ?? null, () => applyOperation(transaction, logged.operation, operation, whole));
        return this.end(transaction, numbered, logs, error);
      });
      this.taken(unlogged);
      return outcome;
    } finally {
      this.isSlicing = false;
    }
  }

  /** Finds the operation's points. Returns why it fails, having changed nothing; null on success. */
  private *find(work: WideWork, { logged }: NumberedOperation): Generator<Pause, TroupeError | null> {
    for (;;) {
      try {
        const isOver = this.host.beginPortion();
        if (measured(logged.usage ?? null, () => work.find(isOver))) return null;
      } catch (error) {
        return knownError(error);
      }
      yield null;
    }
  }

  private *slice(work: WideWork, numbered: NumberedOperation, unlogged: NumberedOperation[]): Generator<Pause, void> {
    this.host.holdStats();
    while (work.next !== null) {
      const logs = this.backlog.length === 0;
      yield* this.transacting((transaction) => this.oneSlice(transaction, work, numbered, logs));
      if (logs) this.backlog.push(unlogged.shift() as NumberedOperation);
      if (work.next !== null) yield null;
    }
    this.taken(unlogged);
  }

  /** A slice within its transaction, in portions. logs: the operation is not in the log yet. */
  private *oneSlice(transaction: Transaction, work: WideWork, numbered: NumberedOperation, logs: boolean): Generator<Pause, void> {
    const { logged, operation } = numbered;
    const usage = logged.usage ?? null;
    if (logs) this.append([numbered]);
    if (transaction.unfinished === null && work.next !== null) transaction.beginSlices(operation, work.next);
    const bounds = new SliceBounds(transaction, this.host.beginSlice());
    for (;;) {
      const part = work.portion(bounds.begin(this.host.beginPortion()));
      measured(usage, () => applyPortion(transaction, logged.operation, operation, part));
      transaction.storeEarly();
      const isLast = work.next === null || bounds.isFull;
      if (isLast || transaction.isIndexFull) yield* this.flushingIndex(transaction, usage);
      if (isLast) break;
      yield null;
    }
    if (work.next !== null) transaction.endSlice(work.next);
    else {
      transaction.endSlices();
      transaction.appliedOperation = operation;
    }
  }

  /** Writes the collected index records in portions, the first of them after a pause: what was done so far took one. */
  private *flushingIndex(transaction: Transaction, usage: HardwareUsage | null): Generator<Pause, void> {
    const flushing = transaction.flushingIndex(() => this.host.beginPortion());
    do yield null;
    while (measured(usage, () => flushing.next().done) !== true);
  }

  /** Makes the index of a field over many rows: one transaction, in portions. */
  private *createField(
    numbered: NumberedOperation,
    operation: CreateField,
    unlogged: NumberedOperation[],
  ): Generator<Pause, AppliedUpdate> {
    const logs = this.backlog.length === 0;
    this.host.holdStats();
    const outcome = yield* this.transacting((transaction) => this.creatingField(transaction, numbered, operation, logs));
    this.taken(unlogged);
    return outcome;
  }

  private *creatingField(
    transaction: Transaction,
    numbered: NumberedOperation,
    { field, schema }: CreateField,
    logs: boolean,
  ): Generator<Pause, AppliedUpdate> {
    yield* transaction.creatingField(field, schema, () => this.host.beginPortion());
    return this.end(transaction, numbered, logs, null);
  }

  /** The first operation is applied. */
  private taken(unlogged: NumberedOperation[]): void {
    (this.backlog.length > 0 ? this.backlog : unlogged).shift();
    this.host.applied();
  }

  /**
   * Whether nothing would ever read the record of an operation that is logged and applied in one transaction: opening replays what is not
   * applied, and only replicas of a shard with a leader ask each other for entries. Its vectors are written once, with its rows.
   */
  private isUnread({ by }: NumberedOperation): boolean {
    const { keepsLog, wal } = this.host;
    return by.peer === NO_LEADER.peer && by.term === NO_LEADER.term && !wal.isOrdered && !keepsLog;
  }
}

/**
 * Applies one operation. Returns a bound on the number of points that it touched; its error, in which case it has changed nothing; null, and
 * has changed nothing, if it may touch many points.
 */
function applyKnown(transaction: Transaction, { logged, operation }: NumberedOperation): TroupeError | number | null {
  try {
    return measured(logged.usage ?? null, () => {
      const part = narrowPart(transaction, logged.operation);
      if (part === null) return null;
      applyOperation(transaction, logged.operation, operation, part);
      return part.countMax;
    });
  } catch (error) {
    return knownError(error);
  }
}

/**
 * The one error that follows from the operation and the points alone, so that all replicas meet it, and that is raised before anything
 * changed. All others may be of this moment on this machine: they end the transaction (Op-O5).
 */
function knownError(error: unknown): TroupeError {
  if (!(error instanceof TroupeError) || error.code !== 'notFound') throw error;
  return error;
}

/** Whether the disk refused the whole transaction: trying its operations one by one would not help. */
function isRefusal(error: unknown): error is LmdbError | AppendError {
  return error instanceof LmdbError || error instanceof AppendError;
}

function notApplied(operation: number, error: unknown): TroupeError {
  const reason = reasonOf(error);
  const when = reason === 'damaged' ? '' : ' now, it will be tried again';
  const detail = `operation ${operation} is logged and cannot be applied${when}: ${errorFacts(error).detail}`;
  return new TroupeError('storage', detail, { cause: error, reason });
}

/** Whether the operation may change any number of points. */
function isUnbounded({ logged: { operation } }: NumberedOperation): boolean {
  return 'selector' in operation && operation.selector.kind === 'filter';
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
