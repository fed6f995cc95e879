/**
 * Takes a replica's operations into the log, then into its points (Wal-W1, Wal-W2). Operations that are logged and not applied wait here.
 */

import { TroupeError } from '../../protocols/errors.js';
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

  /** Applies, at opening, operations that the log has and the points lack. Errors: `storage`. */
  replay(group: readonly NumberedOperation[]): void {
    this.backlog.push(...group);
    this.apply();
    if (this.backlog.length > 0)
      throw new TroupeError('storage', `operations from ${this.backlog[0]?.operation} on of the WAL cannot be applied`);
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
   * log then, whatever their results. Returns the results of the operations that were logged before, then those of `numbered`. An operation
   * that meets a bug fails alone. Errors: `storage`; if that follows a bug, the operations may be in the log, not applied.
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
      this.log(numbered);
      return this.applyBacklog();
    }
  }

  private applyTogether(logged: readonly NumberedOperation[], unlogged: readonly NumberedOperation[]): AppliedUpdate[] {
    const outcomes = this.host.transact((transaction) => [
      ...this.applyAll(transaction, logged, false),
      ...this.applyAll(transaction, unlogged, true),
    ]);
    this.host.applied();
    return outcomes;
  }

  /**
   * Applies the logged operations one by one and skips those that meet a bug. Errors: `storage` if the disk refuses; the rest stays logged
   * then.
   */
  private applyBacklog(): AppliedUpdate[] {
    const outcomes: AppliedUpdate[] = [];
    for (let next = this.backlog[0]; next !== undefined; next = this.backlog[0]) {
      outcomes.push(this.applyAlone(next));
      this.backlog.shift();
    }
    return outcomes;
  }

  private applyAlone(next: NumberedOperation): AppliedUpdate {
    const { operation } = next;
    try {
      return (this.applyTogether([next], []) as [AppliedUpdate])[0];
    } catch (error) {
      rethrowBroken(error);
      if (isRefusal(error)) throw error;
      this.host.warn(`operation ${operation} cannot be applied and is passed over: ${textOf(error)}`);
      this.host.transact((transaction) => {
        transaction.appliedOperation = operation;
        this.host.wal.markFailed(operation);
      });
      return { operation, error: asKnown(error) };
    }
  }

  /**
   * Applies operations in a transaction. One that depends on the one before it is skipped if that one was not applied, however long ago.
   * logs: the operations are not in the log yet.
   */
  private applyAll(transaction: Transaction, operations: readonly NumberedOperation[], logs: boolean): AppliedUpdate[] {
    const { wal } = this.host;
    let isNothing = false;
    return operations.map((numbered): AppliedUpdate => {
      const { isLeaders, logged, operation } = numbered;
      const applied = transaction.appliedOperation;
      invariant(operation > applied, 'Wal-W2', () => `operation ${operation} is applied after operation ${applied}`);
      const broken = isNothing || (wal.failed > 0 && wal.failed === transaction.appliedOperation);
      const error = logged.chained && broken ? 'skipped' : applyKnown(transaction, numbered);
      isNothing = error !== null && logs && isLeaders === true;
      if (logs && this.isUnread(numbered)) wal.passOver(operation);
      else if (logs) this.append([isNothing ? { ...numbered, logged: NOTHING } : numbered]);
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
    // Only `notFound` is raised before anything changed and concerns this operation alone; any other error ends the transaction.
    if (!(error instanceof TroupeError) || error.code !== 'notFound') throw error;
    return error;
  }
}

/** Whether the disk refused the whole transaction, as opposed to a bug in an operation. */
function isRefusal(error: unknown): error is LmdbError | AppendError {
  return error instanceof LmdbError || error instanceof AppendError;
}

function asKnown(error: unknown): TroupeError {
  if (error instanceof TroupeError) return error;
  return new TroupeError('internal', `the operation cannot be applied: ${textOf(error)}`, { cause: error });
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
