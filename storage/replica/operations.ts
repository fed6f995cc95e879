/**
 * Takes a replica's operations into the log, then into its points (Wal-W1, Wal-W2). Operations that are logged and not applied wait here.
 */

import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { invariant, rethrowBroken } from '../../protocols/invariant.js';
import { type LoggedOperation, NOTHING } from '../../protocols/update-codec.js';
import { AppendError } from '../disk/append-file.js';
import { LmdbError } from '../disk/lmdb.js';
import { measured } from '../disk/meter.js';
import { type Leader, NO_LEADER } from '../wal/log-tags.js';
import type { WriteAheadLog } from '../wal/wal.js';
import { applyOperation } from './apply.js';
import type { Transaction } from './transaction.js';

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
}

/** The result of an operation. skipped: the operation that it depends on failed. isNothing: the log has `NOTHING` in its place. */
export type AppliedUpdate = { readonly operation: number; readonly error: TroupeError | 'skipped' | null; readonly isNothing?: boolean };

/** The part of a replica that operations use. */
export interface OperationsHost {
  readonly wal: WriteAheadLog;
  /** Intended size of the log in bytes. */
  readonly walCapacity: number;
  /** A copy of the replica needs the operations that follow it. */
  readonly keepsLog: boolean;
  /** Runs `action` in one LMDB transaction. */
  commit<T>(action: () => T): T;
  /** Runs `change` in a transaction (Wal-W3). */
  transact<T>(change: (transaction: Transaction) => T): T;
  /** Called after operations were applied. */
  applied(): void;
  warn(message: string): void;
}

export class Operations {
  /** Operations in the WAL that are acknowledged and not applied yet. */
  private backlog: NumberedOperation[] = [];

  constructor(private readonly host: OperationsHost) {}

  /** Number of operations that are logged and not applied. */
  get waiting(): number {
    return this.backlog.length;
  }

  /** Applies, at opening, operations that the log has and the points lack. Errors: those of `apply`. */
  replay(group: readonly NumberedOperation[]): void {
    this.backlog.push(...group);
    this.apply();
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
    for (const { operation, by, logged } of numbered) this.host.wal.append(operation, by, logged, this.host.walCapacity);
  }

  /**
   * Applies the logged operations, then logs and applies `numbered`, in one transaction that is on disk on return: all of them are in the
   * log then, whatever their results. Returns the results of the operations that were logged before, then those of `numbered`.
   *
   * What is logged was acknowledged, and is never passed over (Op-O5): where it cannot be applied, that is thrown and it waits. Of a leader's
   * operations that are not logged yet, one that cannot be applied fails alone, and the log has nothing in its place. Errors: `storage`; the
   * first of `numbered` may have been logged and applied then.
   */
  apply(numbered: readonly NumberedOperation[] = []): AppliedUpdate[] {
    if (numbered.length + this.backlog.length === 0) return [];
    try {
      const outcomes = this.applyTogether(this.backlog, numbered);
      this.backlog = [];
      return outcomes;
    } catch (error) {
      rethrowBroken(error);
      if (isRefusal(error)) throw error;
      this.host.warn(`a group of operations failed and is applied one by one: ${textOf(error)}`);
      return [...this.applyBacklog(), ...this.applyUnlogged(numbered)];
    }
  }

  private applyTogether(logged: readonly NumberedOperation[], unlogged: readonly NumberedOperation[], wasNothing = false): AppliedUpdate[] {
    const outcomes = this.host.transact((transaction) => [
      ...this.applyAll(transaction, logged, false),
      ...this.applyAll(transaction, unlogged, true, wasNothing),
    ]);
    this.host.applied();
    return outcomes;
  }

  /** Applies the logged operations one by one. Errors: why the first of those that are left cannot be applied. */
  private applyBacklog(): AppliedUpdate[] {
    const outcomes: AppliedUpdate[] = [];
    for (let next = this.backlog[0]; next !== undefined; next = this.backlog[0]) {
      try {
        outcomes.push(...this.applyTogether([next], []));
      } catch (error) {
        rethrowBroken(error);
        throw isRefusal(error) ? error : notApplied(next.operation, error);
      }
      this.backlog.shift();
    }
    return outcomes;
  }

  /** Logs and applies operations one by one. Errors: why one cannot be applied that a leader elsewhere has logged. */
  private applyUnlogged(numbered: readonly NumberedOperation[]): AppliedUpdate[] {
    const outcomes: AppliedUpdate[] = [];
    for (const next of numbered) {
      const wasNothing = outcomes.at(-1)?.isNothing === true;
      try {
        outcomes.push(...this.applyTogether([], [next], wasNothing));
      } catch (error) {
        rethrowBroken(error);
        if (isRefusal(error)) throw error;
        if (next.isLeaders !== true) throw notApplied(next.operation, error);
        this.host.warn(`operation ${next.operation} cannot be applied and is refused: ${textOf(error)}`);
        outcomes.push(this.refuse(next, error));
      }
    }
    return outcomes;
  }

  /** Gives the operation's place in the log to nothing. */
  private refuse(next: NumberedOperation, reason: unknown): AppliedUpdate {
    const { operation } = next;
    this.host.transact((transaction) => {
      this.take(next, true);
      transaction.appliedOperation = operation;
    });
    this.host.applied();
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
   * Applies operations in a transaction. One that depends on the one before it is skipped if that one was not applied, however long ago.
   * logs: the operations are not in the log yet. wasNothing: the log has nothing in the place of the one before the first.
   */
  private applyAll(transaction: Transaction, operations: readonly NumberedOperation[], logs: boolean, wasNothing = false): AppliedUpdate[] {
    const { wal } = this.host;
    let isNothing = wasNothing;
    return operations.map((numbered): AppliedUpdate => {
      const { isLeaders, logged, operation } = numbered;
      const applied = transaction.appliedOperation;
      invariant(operation > applied, 'Wal-W2', () => `operation ${operation} is applied after operation ${applied}`);
      const broken = isNothing || (wal.failed > 0 && wal.failed === transaction.appliedOperation);
      const error = logged.chained && broken ? 'skipped' : applyKnown(transaction, numbered);
      isNothing = error !== null && logs && isLeaders === true;
      if (logs) this.take(numbered, isNothing);
      transaction.appliedOperation = operation;
      if (error !== null && !isNothing) wal.markFailed(operation);
      return { operation, error, isNothing };
    });
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

/** Applies one operation. Returns its error, in which case it has changed nothing; null on success. */
function applyKnown(transaction: Transaction, { logged, operation }: NumberedOperation): TroupeError | null {
  try {
    measured(logged.usage ?? null, () => applyOperation(transaction, logged.operation, operation));
    return null;
  } catch (error) {
    // The one error that follows from the operation and the points alone, so that all replicas meet it, and that is raised before anything
    // changed. All others may be of this moment on this machine: they end the transaction (Op-O5).
    if (!(error instanceof TroupeError) || error.code !== 'notFound') throw error;
    return error;
  }
}

/** Whether the disk refused the whole transaction: trying its operations one by one would not help. */
function isRefusal(error: unknown): error is LmdbError | AppendError {
  return error instanceof LmdbError || error instanceof AppendError;
}

function notApplied(operation: number, error: unknown): TroupeError {
  const detail = `operation ${operation} is logged and cannot be applied now, it will be tried again: ${errorFacts(error).detail}`;
  return new TroupeError('storage', detail, { cause: error });
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
