/**
 * A world in one thread in which time passes only from event to event. After each event messages and promises go on until
 * they are at rest, so that the same seed gives the same order of everything.
 */

import type { Cancel, Mailboxes, Timers } from '../../actors/runtime/ports.js';

/** One life of a node: what it began ends with it. */
export class Life {
  alive = true;
  /** Stopped as by SIGSTOP: what it is due to do waits. */
  paused = false;
  readonly held: (() => void)[] = [];

  constructor(readonly name: string) {}
}

interface Event {
  readonly dueMs: number;
  readonly order: number;
  readonly life: Life | null;
  run: (() => void) | null;
}

/** Rounds of messages and promises after one event; more is a loop without end. */
const ROUNDS_MAX = 20_000;

export class World {
  /** Since the beginning. */
  nowMs = 0;
  /** Events that have run. */
  events = 0;
  /** Called when all that an event caused has come to rest; life: whose event it was, null for the world's own. */
  afterEvent: (life: Life | null) => void = () => {};
  readonly #queue: Event[] = [];
  #order = 0;
  #posted: { readonly life: Life; readonly run: () => void }[] = [];
  #stopped = false;

  /** Runs `run` after `delayMs`, unless cancelled or the life has ended by then. */
  after(delayMs: number, run: () => void, life: Life | null = null): Cancel {
    const event: Event = { dueMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, life, run };
    this.#push(event);
    return () => {
      event.run = null;
    };
  }

  /** Runs `run` in this event, behind what was posted before. */
  post(life: Life, run: () => void): void {
    this.#posted.push({ life, run });
  }

  /** Resolves after `delayMs`; never when the life ends before. */
  sleep(delayMs: number, life: Life | null = null): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve, life));
  }

  pause(life: Life): void {
    life.paused = true;
  }

  resume(life: Life): void {
    life.paused = false;
    // Each in an event of its own, as they would have come.
    for (const run of life.held.splice(0)) this.after(0, run, life);
  }

  /** No event runs after the one that calls it. */
  stop(): void {
    this.#stopped = true;
  }

  /** Lets `delayMs` pass, or less when `stop` is called. */
  async run(delayMs: number): Promise<void> {
    const untilMs = this.nowMs + delayMs;
    await this.#settle(null);
    while (!this.#stopped) {
      const event = this.#queue[0];
      if (event === undefined || event.dueMs > untilMs) break;
      this.#pop();
      if (event.run === null || event.life?.alive === false) continue;
      this.nowMs = event.dueMs;
      if (event.life?.paused === true) {
        event.life.held.push(event.run);
        continue;
      }
      this.events += 1;
      event.run();
      await this.#settle(event.life);
    }
    if (!this.#stopped) this.nowMs = untilMs;
  }

  timersOf(life: Life): Timers {
    return { after: (delayMs, run) => this.after(delayMs, run, life) };
  }

  mailboxesOf(life: Life): Mailboxes {
    return {
      open: (_parent, _name, receive) => {
        let open = true;
        return {
          post: (item) => this.post(life, () => open && receive(item)),
          close: () => {
            open = false;
          },
        };
      },
      close: () => {},
    };
  }

  /** Messages and promises in turn, until both are at rest. */
  async #settle(life: Life | null): Promise<void> {
    for (let round = 0; ; round++) {
      if (round > ROUNDS_MAX) throw new Error('messages go on without end');
      const posted = this.#posted;
      this.#posted = [];
      for (const item of posted) {
        if (!item.life.alive) continue;
        if (item.life.paused) item.life.held.push(item.run);
        else item.run();
      }
      // All promises that can go on have gone on when a new turn begins.
      await turn();
      if (this.#posted.length === 0) break;
    }
    this.afterEvent(life);
  }

  #push(event: Event): void {
    const queue = this.#queue;
    let at = queue.length;
    queue.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(event, queue[above] as Event)) break;
      queue[at] = queue[above] as Event;
      at = above;
    }
    queue[at] = event;
  }

  #pop(): void {
    const queue = this.#queue;
    const last = queue.pop() as Event;
    if (queue.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= queue.length) break;
      if (below + 1 < queue.length && isBefore(queue[below + 1] as Event, queue[below] as Event)) below += 1;
      if (!isBefore(queue[below] as Event, last)) break;
      queue[at] = queue[below] as Event;
      at = below;
    }
    queue[at] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.dueMs < other.dueMs || (one.dueMs === other.dueMs && one.order < other.order);
}

// Taken here, as the guards of a run take the global one away.
const immediate = setImmediate;

/**
 * Immediates that are set at once. Between two of them Node.js runs all promises that can go on, and it asks the system for events only after
 * the last one: a call that costs more than most events here.
 */
const TURNS_AHEAD = 64;
let turnsAhead = 0;
const waiting: (() => void)[] = [];

function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (turnsAhead > 0) return;
    turnsAhead = TURNS_AHEAD;
    for (let at = 0; at < TURNS_AHEAD; at++) immediate(nextTurn);
  });
}

function nextTurn(): void {
  turnsAhead -= 1;
  waiting.shift()?.();
}
