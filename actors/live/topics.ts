/** What can be followed live: topics, and what has changed of them. */

export const TOPICS = ['collections', 'replicas', 'transfers', 'optimizations', 'actors'] as const;

export type Topic = (typeof TOPICS)[number];

/**
 * All items of one group as they are now: they replace what was known of the group; none: there is no such group any more. A group is a collection,
 * of actors one actor by its path.
 */
export interface LiveGroup {
  readonly group: string;
  readonly items: readonly object[];
}

/** Groups of a topic that have changed. */
export interface LiveChange {
  readonly topic: Topic;
  readonly groups: readonly LiveGroup[];
}

/** Something of a group may have changed. */
export interface LiveSignal {
  readonly topic: Topic;
  readonly group: string;
}

/** Reads items of topics, and tells when they may have changed. */
export interface LiveSources {
  /** Calls the listener until it is cancelled. Nothing is watched while nobody listens. */
  watch(listener: (signal: LiveSignal) => void): () => void;
  /** Groups that a topic has now. Of actors none: they are shown as they change. */
  groups(topic: Topic): Iterable<string>;
  read(signal: LiveSignal): readonly object[];
}
