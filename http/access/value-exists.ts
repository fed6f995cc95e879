/** Whether the point that a token wants is there (`value_exists`). */

import type { NodeApi } from '../../actors/requests/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import type { TokenHolder, ValueExists } from './caller.js';

/** What was found, as of this state of the collection. */
interface Found {
  readonly exists: boolean;
  readonly state: string;
  readonly untilMs: number;
}

export interface ValuesParts {
  readonly node: Pick<NodeApi, 'cluster' | 'exists' | 'read' | 'stats'>;
  /** Of a clock that is never set. */
  readonly nowMs: () => number;
}

/** At the latest then it is looked up again, whatever the collection's state says. */
const FOUND_MS = 1000;
const FOUND_MAX = 1024;
const LOOKUP_MS = 10_000;
const TEXT = 'Invalid JWT, stateful validation failed';

export class ExistingValues {
  readonly #found = new Map<string, Found>();

  constructor(private readonly parts: ValuesParts) {}

  /** Errors: `unauthorized` if the point is not there, `tokenRefused` if the collection isn't; those of reading it. */
  async confirm({ fingerprint, valueExists }: Pick<TokenHolder, 'fingerprint' | 'valueExists'>): Promise<void> {
    if (valueExists === null) return;
    const { collection } = valueExists;
    // Also by an alias. A collection of this name that was made anew has another state.
    if (!this.parts.node.exists(collection)) throw new TroupeError('tokenRefused', TEXT);
    const state = this.#stateOf(collection);
    const known = this.#found.get(fingerprint);
    const isKnown = known !== undefined && known.state === state && this.parts.nowMs() < known.untilMs;
    const exists = isKnown ? known.exists : await this.#lookUp(fingerprint, valueExists, state);
    if (!exists) throw new TroupeError('unauthorized', TEXT);
  }

  async #lookUp(fingerprint: string, valueExists: ValueExists, state: string | null): Promise<boolean> {
    const untilMs = this.parts.nowMs() + FOUND_MS;
    const exists = await this.#read(valueExists);
    // Whoever wrote meanwhile has made another state.
    if (state !== null) this.#remember(fingerprint, { exists, state, untilMs });
    return exists;
  }

  async #read({ collection, matches }: ValueExists): Promise<boolean> {
    const filter = { must: matches.map(({ key, value }) => ({ key, match: { value } })) };
    const body = new TextEncoder().encode(stringifyJson({ filter, limit: 1, with_payload: false, with_vector: false }));
    const deadlineMs = this.parts.nowMs() + LOOKUP_MS;
    try {
      const answer = await this.parts.node.read(collection, 'scroll', { path: {}, query: {}, body, deadlineMs });
      return (parseJson(answer) as unknown as { readonly points: readonly unknown[] }).points.length > 0;
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'notFound') throw new TroupeError('tokenRefused', TEXT, { cause: error });
      throw error;
    }
  }

  /** Changes with each write that is applied; null: other nodes write, too. */
  #stateOf(collection: string): string | null {
    const { node } = this.parts;
    if (node.cluster !== null) return null;
    return node
      .stats(collection)
      .map(({ appliedOperation, key }) => `${key} ${appliedOperation}`)
      .join();
  }

  #remember(fingerprint: string, found: Found): void {
    const [oldest] = this.#found.keys();
    if (oldest !== undefined && this.#found.size >= FOUND_MAX) this.#found.delete(oldest);
    this.#found.set(fingerprint, found);
  }
}
