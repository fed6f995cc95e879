/**
 * The operations of a replica on their way: into the log, then into its points (Wal-W1, Wal-W2). What is logged and not applied waits here.
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

/** An operation with its number, and who gave it. */
export interface NumberedOperation {
  readonly operation: number;
  readonly by: Leader;
  readonly logged: LoggedOperation;
  /**
   * The leader's own: in the place of one that fails, and of those that hang on it, the log has `NOTHING`. Else another replica, which may lack
   * points for a while, would have to find out by itself whether it failed.
   */
  readonly isLeaders?: boolean;
}

/** How an operation went. `skipped`: the one it hangs on failed. isNothing: the log has `NOTHING` in its place. */
export type AppliedUpdate = { readonly operation: number; readonly error: TroupeError | 'skipped' | null; readonly isNothing?: boolean };

/** What operations need of their replica. */
export interface OperationsHost {
  readonly wal: WriteAheadLog;
  /** Bytes the log is to have. */
  readonly walCapacity: number;
  /** Runs `action` in one LMDB transaction. */
  commit<T>(action: () => T): T;
  /** Runs `change` in a transaction; Wal-W3. */
  transact<T>(change: (transaction: Transaction) => T): T;
  /** Something was applied. */
  applied(): void;
  warn(message: string): void;
}

export class Operations {
  /** In the WAL and acknowledged, not applied yet. */
  private backlog: NumberedOperation[] = [];

  constructor(private readonly host: OperationsHost) {}

  /** How many are logged and not applied. */
  get waiting(): number {
    return this.backlog.length;
  }

  /** Those that the log has and the points don't, at opening. Errors: `storage`. */
  replay(group: readonly NumberedOperation[]): void {
    this.backlog.push(...group);
    this.apply([]);
    if (this.backlog.length > 0)
      throw new TroupeError('storage', `operations from ${this.backlog[0]?.operation} on of the WAL cannot be applied`);
  }

  /** The log has been reset. */
  forget(): void {
    this.backlog = [];
  }

  /** Puts operations in the WAL, on disk on return, to be applied by the next `apply`. Returns their numbers. Errors: `storage`; nothing is logged then. */
  log(operations: readonly LoggedOperation[]): number[] {
    const numbered = this.number(operations);
    this.logNumbered(numbered);
    return numbered.map(({ operation }) => operation);
  }

  /** As `log`, operations of a leader: in ascending order, behind all that are there. */
  logNumbered(numbered: readonly NumberedOperation[]): void {
    if (numbered.length === 0) return;
    this.host.commit(() => this.append(numbered));
    this.backlog.push(...numbered);
  }

  private append(numbered: readonly NumberedOperation[]): void {
    for (const { operation, by, logged } of numbered) this.host.wal.append(operation, by, logged, this.host.walCapacity);
  }

  /**
   * Applies what was logged, then logs and applies `operations`, in one transaction that is on disk on return.
   * Returns how each of `operations` went. A disk that refuses is the outcome of all of them: they are not in the WAL
   * then, and what was logged waits for the next call. An operation that meets a bug is alone with it.
   */
  apply(operations: readonly LoggedOperation[]): AppliedUpdate[] {
    const numbered = this.number(operations);
    if (numbered.length + this.backlog.length === 0) return [];
    try {
      const outcomes = this.applyTogether(this.backlog, numbered);
      this.backlog = [];
      return outcomes.slice(outcomes.length - numbered.length);
    } catch (error) {
      rethrowBroken(error);
      if (isRefusal(error)) return numbered.map(({ operation }) => ({ operation, error }));
      return this.applyOneByOne(operations, error);
    }
  }

  /**
   * As `apply`, operations of a leader: all of them are in the log on return, whatever becomes of each. Returns how each went, and before
   * these each of those that were logged. Errors: `storage`; where that is after a bug, they may be in the log, not applied.
   */
  applyNumbered(numbered: readonly NumberedOperation[]): AppliedUpdate[] {
    if (numbered.length + this.backlog.length === 0) return [];
    try {
      const outcomes = this.applyTogether(this.backlog, numbered);
      this.backlog = [];
      return outcomes;
    } catch (error) {
      rethrowBroken(error);
      if (isRefusal(error)) throw error;
      this.host.warn(`a group of operations failed and is applied one by one: ${textOf(error)}`);
      this.logNumbered(numbered);
      return this.applyBacklog();
    }
  }

  private number(operations: readonly LoggedOperation[]): NumberedOperation[] {
    const last = this.host.wal.last.index;
    return operations.map((logged, at) => ({ operation: last + 1 + at, by: NO_LEADER, logged }));
  }

  private applyTogether(logged: readonly NumberedOperation[], unlogged: readonly NumberedOperation[]): AppliedUpdate[] {
    const outcomes = this.host.transact((transaction) => [
      ...this.applyAll(transaction, logged, false),
      ...this.applyAll(transaction, unlogged, true),
    ]);
    this.host.applied();
    return outcomes;
  }

  /** After a bug within a group: the operation that meets it is passed over, the others are applied. */
  private applyOneByOne(operations: readonly LoggedOperation[], cause: unknown): AppliedUpdate[] {
    this.host.warn(`a group of operations failed and is applied one by one: ${textOf(cause)}`);
    try {
      this.applyBacklog();
    } catch (refusal) {
      rethrowBroken(refusal);
      return operations.map(() => ({ operation: 0, error: refusal as TroupeError }));
    }
    let broken = false;
    return operations.map((logged): AppliedUpdate => {
      const operation = this.host.wal.last.index + 1;
      if (logged.chained && broken) return { operation, error: 'skipped' };
      try {
        const alone = { operation, by: NO_LEADER, logged: { ...logged, chained: false, encoded: undefined } };
        const [outcome] = this.applyTogether([], [alone]) as [AppliedUpdate];
        broken = outcome.error !== null;
        return outcome;
      } catch (error) {
        rethrowBroken(error);
        broken = true;
        return { operation, error: asKnown(error) };
      }
    });
  }

  /** Applies what was logged, one after the other: those that meet a bug are passed over. Errors: `storage` when the disk refuses; the rest stays logged then. */
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

  /** An operation that hangs on the one before it is not applied where that one was not, however long ago. logs: they are not in the log yet. */
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
      if (logs) this.append([isNothing ? { ...numbered, logged: NOTHING } : numbered]);
      transaction.appliedOperation = operation;
      if (error !== null && !isNothing) wal.markFailed(operation);
      return { operation, error, isNothing };
    });
  }

  /** Applies what was logged. Errors: `storage`, when the disk refuses. */
  applyLogged(): void {
    if (this.backlog.length > 0) this.applyNumbered([]);
  }
}

/** Why it could not be carried out; it has changed nothing then. */
function applyKnown(transaction: Transaction, { logged, operation }: NumberedOperation): TroupeError | null {
  try {
    measured(logged.usage ?? null, () => applyOperation(transaction, logged.operation, operation));
    return null;
  } catch (error) {
    // Only what was found out before anything changed is the operation's own affair; the rest ends the transaction.
    if (!(error instanceof TroupeError) || error.code !== 'notFound') throw error;
    return error;
  }
}

/** The disk took nothing of the transaction; as opposed to a bug in an operation. */
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
