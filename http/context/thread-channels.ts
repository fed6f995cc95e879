/** The main thread's channels with what readers' threads have opened, each of which ends by itself or with its thread. */

import type { MessagePort } from 'node:worker_threads';

export class ThreadChannels<Order> {
  readonly #open = new Set<MessagePort>();
  #ended: (() => void) | null = null;

  add(channel: MessagePort): void {
    this.#open.add(channel);
    // Also when the thread is lost.
    channel.on('close', () => {
      this.#open.delete(channel);
      if (this.#open.size === 0) this.#ended?.();
    });
  }

  tell(order: Order): void {
    for (const channel of this.#open) channel.postMessage(order);
  }

  /** Resolves when all have ended that are open now. */
  async ended(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#ended = resolve;
    });
  }
}
