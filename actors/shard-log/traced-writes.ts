/** Writes of traces that a leader has under way: what it sends to other replicas is noted for those that it belongs to. */

import type { LogCaller } from '../../cluster/replication/messages.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { ShardEntry } from '../../protocols/model/shard-log.js';
import type { Written } from '../../protocols/model/update.js';
import type { HopNotes } from '../../protocols/model/write-hop.js';
import { traceNowUs } from '../../storage/threads/clock.js';

interface TracedWrite {
  readonly notes: HopNotes;
  /** Of its operations in the log. */
  readonly first: number;
  readonly last: number;
}

export class TracedWrites {
  readonly #writes = new Map<LogCaller, TracedWrite>();

  /** The own log has a write. */
  logged(caller: LogCaller<Written>, notes: HopNotes | undefined, entries: readonly ShardEntry[]): void {
    const [first, last] = [entries[0], entries.at(-1)];
    if (notes === undefined || first === undefined || last === undefined) return;
    this.#writes.set(caller, { notes, first: first.tag.index, last: last.tag.index });
  }

  /** A write is answered. */
  ended(caller: LogCaller): void {
    if (this.#writes.size > 0) this.#writes.delete(caller);
  }

  /** Entries go to a peer. Returns what is to be called when it has answered. */
  sent(peer: PeerId, entries: readonly ShardEntry[]): () => void {
    if (this.#writes.size === 0) return nothing;
    const [from, to] = [entries[0]?.tag.index ?? 0, entries.at(-1)?.tag.index ?? -1];
    const within = [...this.#writes.values()].filter(({ first, last }) => first <= to && last >= from);
    if (within.length === 0) return nothing;
    const startUs = traceNowUs();
    return () => {
      const hop = { name: `replica ${peer}`, startUs, endUs: traceNowUs(), facts: { 'troupe.peer_id': String(peer) }, hops: [] };
      for (const { notes } of within) notes.push(hop);
    };
  }
}

function nothing(): void {}
