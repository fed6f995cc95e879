/** The memory of this process as it runs: its limits, its ledger, and what it uses, measured again and again. */

import { type MemoryBudget, memoryBudget } from './budget.js';
import { gaveBack, isDueForBuild, type MemoryGiver, NOTHING_GIVEN_BACK, nextGiveBack } from './give-back.js';
import { ACCOUNTS, type Account, megabytes } from './ledger.js';
import { type LimitSource, type MemoryLimits, tightestLimit } from './limits.js';
import { readMemoryLimits, readUsedBytes } from './read-limits.js';
import { SharedLedger } from './shared-ledger.js';

export interface MemoryReport {
  readonly limits: MemoryLimits;
  /** The tightest of them. */
  readonly limitedBy: LimitSource;
  readonly budget: MemoryBudget;
  /** Of the whole process, as last measured. */
  readonly usedBytes: number;
  /** Bytes of each account, and of each thread that has some. */
  readonly accounts: Readonly<Record<Account, number>>;
  readonly threads: ReadonlyMap<string, Readonly<Record<Account, number>>>;
}

const MEASURE_EVERY_MS = 500;

export class MemoryWatch {
  readonly ledger: SharedLedger;
  readonly limits: MemoryLimits;
  readonly limit: { readonly bytes: number; readonly source: LimitSource };
  readonly #timer: NodeJS.Timeout;
  /** Hears what the process uses or plans to use, whenever that is measured. */
  onUse: (bytes: number) => void = () => {};
  /** Gives freed memory back to the system; called when it is worth it. Null: nothing can. */
  giveBack: MemoryGiver | null = null;
  #givenBack = NOTHING_GIVEN_BACK;
  #heldBytes = 0;
  /** When memory was given back for a build, by a clock that is never set. */
  #buildMs = Number.NEGATIVE_INFINITY;

  /** setting: `storage.performance.memory_budget_mb`. */
  constructor(setting: number | null, limits: MemoryLimits = readMemoryLimits()) {
    this.limits = limits;
    this.limit = tightestLimit(limits);
    this.ledger = new SharedLedger(memoryBudget(this.limit.bytes, setting));
    this.measure();
    this.#timer = setInterval(() => this.#tick(), MEASURE_EVERY_MS);
    this.#timer.unref();
  }

  measure(): number {
    const used = readUsedBytes();
    this.ledger.measured(used);
    this.onUse(used);
    return used;
  }

  /** What builds and openings under way may need. */
  noteHeld(bytes: number): void {
    const nowMs = performance.now();
    if (this.giveBack !== null && isDueForBuild({ before: this.#heldBytes, now: bytes }, nowMs - this.#buildMs)) {
      this.#buildMs = nowMs;
      this.giveBack('freed and program');
    }
    this.#heldBytes = bytes;
    this.ledger.note('builds', bytes);
    this.onUse(this.ledger.usedBytes + bytes);
  }

  /** For the log. */
  describe(): string {
    const { bytes, requestBytes } = this.ledger.budget;
    const limit = `${megabytes(this.limit.bytes)} (${this.limit.source})`;
    return `memory: this process may have ${limit}; its budget is ${megabytes(bytes)}, ${megabytes(requestBytes)} of it for requests`;
  }

  report(): MemoryReport {
    const threads = this.ledger.held();
    const sum = (account: Account) => [...threads.values()].reduce((bytes, accounts) => bytes + accounts[account], 0);
    return {
      limits: this.limits,
      limitedBy: this.limit.source,
      budget: this.ledger.budget,
      usedBytes: this.measure(),
      accounts: Object.fromEntries(ACCOUNTS.map((account) => [account, sum(account)])) as Record<Account, number>,
      threads,
    };
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const used = this.measure();
    if (this.giveBack === null) return;
    const { due, state } = nextGiveBack(this.#givenBack, used, this.ledger.budget.bytes);
    this.#givenBack = state;
    if (due === null) return;
    // A busy process takes pages of its program again at once.
    this.giveBack(due === 'rest' ? 'freed and program' : 'freed');
    this.#givenBack = gaveBack(state, this.measure());
  }
}
