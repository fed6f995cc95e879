/** Which groups of a topic are to be told: those that may have changed, if they have. Pure but for what it keeps. */

import type { LiveGroup, LiveSources, Topic } from './topics.js';

/** Reading many at once would hold up requests. */
const GROUPS_AT_ONCE = 100;

export class ChangedGroups {
  /** As text, what was told last of each group. */
  readonly #told = new Map<string, string>();
  readonly #noted = new Set<string>();

  constructor(
    private readonly topic: Topic,
    private readonly sources: Pick<LiveSources, 'read'>,
  ) {}

  note(group: string): void {
    this.#noted.add(group);
  }

  /** Whether some were noted that `take` has not looked at. */
  get hasMore(): boolean {
    return this.#noted.size > 0;
  }

  /** Of the groups that were noted, the first hundred: those that are not as they were told last. */
  take(): LiveGroup[] {
    const changed: LiveGroup[] = [];
    let looks = 0;
    for (const group of this.#noted) {
      if (looks++ === GROUPS_AT_ONCE) break;
      this.#noted.delete(group);
      const items = this.sources.read({ topic: this.topic, group });
      const text = JSON.stringify(items);
      if (this.#told.get(group) === text) continue;
      if (items.length === 0) this.#told.delete(group);
      else this.#told.set(group, text);
      changed.push({ group, items });
    }
    return changed;
  }
}
