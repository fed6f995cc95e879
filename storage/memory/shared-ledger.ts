/**
 * The figures of the ledger (`ledger.ts`) in memory that all threads share. Each thread has a row, so that what a lost thread held can be given
 * back for it. Counted in KiB, which a 32-bit number holds for any machine; anything below `SMALL_BYTES` is not counted.
 */

import { LeftMemory } from '../threads/collect-garbage.js';
import { type MemoryBudget, memoryBudget } from './budget.js';
import { ACCOUNTS, type Account, grantsRequest, grantsValues, REQUEST_ACCOUNTS } from './ledger.js';

/** Whose memory is asked for before it is taken. */
export type ReservedAccount = Exclude<Account, 'filters' | 'builds'>;

/** What a thread needs to have a row. */
export interface LedgerShare {
  readonly cells: SharedArrayBuffer;
  readonly budget: MemoryBudget;
  readonly row: number;
}

/** Memory below this size costs less than counting it. */
export const SMALL_BYTES = 4096;

/** Requests may leave this part of the memory for requests in a thread before it is collected. */
const LEFT_SHARE = 0.125;

const KIBIBYTE = 1024;
/** Before the rows: what requests hold in all rows, what the process uses, and what values hold in all rows. */
const REQUESTS = 0;
const USED = 1;
const VALUES = 2;
const HEAD = 3;
/** Rows for threads; further ones share the last. */
const ROWS_MAX = 256;
const MAIN = 0;

/** One thread's part of the ledger. */
export class Ledger {
  /** What requests leave in this thread. Only the thread that has the row uses it. */
  readonly left: LeftMemory;
  protected readonly cells: Int32Array;
  private readonly from: number;

  constructor(protected readonly share: LedgerShare) {
    this.cells = new Int32Array(share.cells);
    this.from = placeOf(share.row);
    this.left = new LeftMemory(share.budget.requestBytes * LEFT_SHARE);
  }

  get budget(): MemoryBudget {
    return this.share.budget;
  }

  /** What the process used when it was last measured. */
  get usedBytes(): number {
    return Atomics.load(this.cells, USED) * KIBIBYTE;
  }

  /** Whether requests may have so much more, which then counts as theirs. */
  reserve(account: ReservedAccount, bytes: number): boolean {
    const amount = kibibytes(bytes);
    if (amount === 0) return true;
    const sum = sumOf(account);
    const place = this.from + ACCOUNTS.indexOf(account);
    const before = Atomics.add(this.cells, sum, amount);
    const [held, asked, own] = [before * KIBIBYTE, amount * KIBIBYTE, Atomics.load(this.cells, place) * KIBIBYTE];
    const { budget } = this.share;
    if (!(account === 'values' ? grantsValues(budget, held, own, asked) : grantsRequest(budget, held, asked))) {
      Atomics.sub(this.cells, sum, amount);
      return false;
    }
    Atomics.add(this.cells, place, amount);
    return true;
  }

  /** Gives back what was reserved, by the same number. */
  release(account: ReservedAccount, bytes: number): void {
    const amount = kibibytes(bytes);
    if (amount === 0) return;
    Atomics.sub(this.cells, sumOf(account), amount);
    Atomics.sub(this.cells, this.from + ACCOUNTS.indexOf(account), amount);
  }

  /** Notes what this thread has in an account that is not for requests. */
  note(account: Account, bytes: number): void {
    Atomics.store(this.cells, this.from + ACCOUNTS.indexOf(account), kibibytes(bytes));
  }
}

/** The whole ledger, for the main thread, which has the first row. */
export class SharedLedger extends Ledger {
  readonly #rows = new Map<string, number>();

  constructor(budget: MemoryBudget) {
    super({ cells: new SharedArrayBuffer((HEAD + ROWS_MAX * ACCOUNTS.length) * Int32Array.BYTES_PER_ELEMENT), budget, row: MAIN });
  }

  /** What the thread of this name starts with. What an earlier thread of the name held is given back. */
  shareOf(name: string): LedgerShare {
    const row = this.#rows.get(name) ?? Math.min(ROWS_MAX - 1, this.#rows.size + 1);
    this.#rows.set(name, row);
    this.forget(name);
    return { ...this.share, row };
  }

  /** The thread of this name is gone: what it held is free. */
  forget(name: string): void {
    const row = this.#rows.get(name);
    if (row === undefined || row === ROWS_MAX - 1) return;
    ACCOUNTS.forEach((account, at) => {
      const amount = Atomics.exchange(this.cells, placeOf(row) + at, 0);
      if (isReserved(account)) Atomics.sub(this.cells, sumOf(account), amount);
    });
  }

  /** usedBytes: by the process, as measured now. */
  measured(usedBytes: number): void {
    Atomics.store(this.cells, USED, kibibytes(usedBytes));
  }

  /** Bytes of each account of each thread that has something. */
  held(): ReadonlyMap<string, Readonly<Record<Account, number>>> {
    const rows = [['main', MAIN] as const, ...this.#rows];
    const held = rows.map(([name, row]) => [name, this.#accounts(row)] as const);
    return new Map(held.filter(([, accounts]) => Object.values(accounts).some((bytes) => bytes > 0)));
  }

  #accounts(row: number): Record<Account, number> {
    const entries = ACCOUNTS.map((account, at) => [account, Atomics.load(this.cells, placeOf(row) + at) * KIBIBYTE]);
    return Object.fromEntries(entries) as Record<Account, number>;
  }
}

/** A ledger that refuses nothing (programs and tests that have none). */
export function unlimitedLedger(): SharedLedger {
  return new SharedLedger(memoryBudget(Number.MAX_SAFE_INTEGER, null));
}

function isReserved(account: Account): account is ReservedAccount {
  return account === 'values' || REQUEST_ACCOUNTS.includes(account);
}

/** Where the sum of all rows stands. */
function sumOf(account: ReservedAccount): number {
  return account === 'values' ? VALUES : REQUESTS;
}

function placeOf(row: number): number {
  return HEAD + row * ACCOUNTS.length;
}

function kibibytes(bytes: number): number {
  return bytes < SMALL_BYTES ? 0 : Math.ceil(bytes / KIBIBYTE);
}
