/** Hands what the engine tells about a replica to the one who looks after it. */

import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import type { ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import type { Cancel, EnginePort } from './ports.js';

export interface ReplicaListener {
  stats(stats: ReplicaStats): void;
  failed(error: ErrorFacts): void;
}

export class EngineSignals {
  readonly #listeners = new Map<ReplicaKey, ReplicaListener>();
  readonly #cancels: Cancel[];

  constructor(engine: Pick<EnginePort, 'onStats' | 'onFailed'>) {
    this.#cancels = [
      engine.onStats((stats) => this.#listeners.get(stats.key)?.stats(stats)),
      engine.onFailed((key, error) => this.#listeners.get(key)?.failed(errorFacts(error))),
    ];
  }

  /** One listener per replica: the newest one. */
  listen(key: ReplicaKey, listener: ReplicaListener): Cancel {
    this.#listeners.set(key, listener);
    return () => {
      if (this.#listeners.get(key) === listener) this.#listeners.delete(key);
    };
  }

  close(): void {
    for (const cancel of this.#cancels) cancel();
  }
}
