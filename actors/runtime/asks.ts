/** Requests that wait for an actor's answer. Each ends exactly once: by answer, error, timeout, or the end of the actor that has it. */

import type { ReplyTo } from './behaviour.js';
import type { Cancel, Timers } from './ports.js';

interface Ask {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: Error) => void;
  readonly cancelTimeout: Cancel;
  holder: AskHolder;
}

/** The actor that has to answer. */
export interface AskHolder {
  /** Null until it has had one: most of some ten thousand actors never have any. */
  asks: Set<number> | null;
}

export class Asks {
  readonly #open = new Map<number, Ask>();
  #lastId = 0;

  constructor(readonly timers: Timers) {}

  /** Opens a request for `holder`; `onTimeout` makes the error it ends with when nobody answers within `timeoutMs`. */
  open<Answer>(holder: AskHolder, timeoutMs: number, onTimeout: () => Error): { replyTo: ReplyTo<Answer>; answer: Promise<Answer> } {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<Answer>((resolve, reject) => {
      const cancelTimeout = this.timers.after(timeoutMs, () => this.reject(id, onTimeout()));
      this.#open.set(id, { resolve, reject, cancelTimeout, holder });
      take(holder, id);
    });
    return { replyTo: id as ReplyTo<Answer>, answer };
  }

  /** Makes `holder` the one who has to answer. False when the caller waits no longer. */
  handOver(id: number, holder: AskHolder): boolean {
    const ask = this.#open.get(id);
    if (ask === undefined) return false;
    ask.holder.asks?.delete(id);
    ask.holder = holder;
    take(holder, id);
    return true;
  }

  resolve(id: number, answer: unknown): void {
    // The caller's type stands in its `ReplyTo`; here all answers are alike.
    this.#close(id)?.resolve(answer as never);
  }

  reject(id: number, error: Error): void {
    this.#close(id)?.reject(error);
  }

  /** Ends everything `holder` has with an error, which is made if there is anything. */
  rejectAll({ asks }: AskHolder, makeError: () => Error): void {
    if (asks === null || asks.size === 0) return;
    const error = makeError();
    for (const id of [...asks]) this.reject(id, error);
  }

  #close(id: number): Ask | undefined {
    const ask = this.#open.get(id);
    if (ask === undefined) return undefined;
    this.#open.delete(id);
    ask.holder.asks?.delete(id);
    ask.cancelTimeout();
    return ask;
  }
}

function take(holder: AskHolder, id: number): void {
  holder.asks ??= new Set();
  holder.asks.add(id);
}
