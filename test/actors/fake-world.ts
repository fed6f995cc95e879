/** A world for actors in which time and messages move only when a test says so. */

import type { Log, Mailbox, RuntimePorts } from '../../actors/runtime/ports.js';

interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

export class FakeWorld {
  nowMs = 1_000_000;
  readonly logged: string[] = [];
  readonly #timers = new Set<Timer>();
  #items: { readonly deliver: () => void }[] = [];

  readonly log: Log = {
    debug: (message) => this.logged.push(`debug ${message}`),
    info: (message) => this.logged.push(`info ${message}`),
    warn: (message) => this.logged.push(`warn ${message}`),
    error: (message) => this.logged.push(`error ${message}`),
  };

  readonly ports: RuntimePorts = {
    clock: { nowMs: () => this.nowMs, dateMs: () => this.nowMs, monotonicMs: () => this.nowMs },
    timers: {
      after: (delayMs, run) => {
        const timer = { dueMs: this.nowMs + delayMs, run };
        this.#timers.add(timer);
        return () => this.#timers.delete(timer);
      },
    },
    // In the middle: delays are not moved.
    random: { next: () => 0.5 },
    log: this.log,
    mailboxes: { open: (_parent, _name, receive) => this.#mailbox(receive), close: () => {} },
  };

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Delivers messages, also those that they cause, until none is left. */
  deliver(): void {
    for (let item = this.#items.shift(); item !== undefined; item = this.#items.shift()) item.deliver();
  }

  /** Delivers messages and lets promises go on until both are at rest. */
  async settle(): Promise<void> {
    for (let round = 0; round < 20; round++) {
      this.deliver();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.deliver();
  }

  /** Lets time pass: timers run in the order they are due, messages after each. */
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (;;) {
      this.deliver();
      const next = [...this.#timers].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > untilMs) break;
      this.#timers.delete(next);
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      next.run();
    }
    this.nowMs = untilMs;
  }

  #mailbox(receive: (item: unknown) => void): Mailbox {
    let open = true;
    return {
      post: (item) => this.#items.push({ deliver: () => open && receive(item) }),
      close: () => {
        open = false;
      },
    };
  }
}
