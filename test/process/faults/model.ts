/**
 * What a collection may hold after operations of which some were acknowledged, some refused, and of some nobody knows. Each operation concerns
 * the points of one group, so it is half applied when a group is in no state that it can be in.
 */

export interface ModelPoint {
  readonly id: number;
  readonly vector: readonly number[];
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Points of a group, in the order of their ids. */
export type Group = readonly ModelPoint[];
export type Effect = (group: Group) => Group;

/** acknowledged: it must be there; refused: it must not; unknown: either. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown';

/** Ids of a group: from `group * IDS_PER_GROUP`. */
export const IDS_PER_GROUP = 1000;

export class ModelCollection {
  /** Possible answers to whether it is there. */
  readonly presence: Possible<boolean>;
  readonly #groups = new Map<number, Possible<Group>>();

  constructor(presence = new Possible(false)) {
    this.presence = presence;
  }

  copy(): ModelCollection {
    const copy = new ModelCollection(this.presence.copy());
    for (const [number, group] of this.#groups) copy.#groups.set(number, group.copy());
    return copy;
  }

  group(number: number): Possible<Group> {
    const group = this.#groups.get(number) ?? new Possible<Group>([]);
    this.#groups.set(number, group);
    return group;
  }

  /** What is wrong with the points found, in words. What was found is what is possible from then on. */
  check(points: readonly ModelPoint[]): string[] {
    const found = new Map<number, ModelPoint[]>([...this.#groups.keys()].map((group) => [group, []]));
    for (const point of [...points].sort((a, b) => a.id - b.id)) {
      const group = Math.floor(point.id / IDS_PER_GROUP);
      found.set(group, [...(found.get(group) ?? []), point]);
    }
    return [...found].flatMap(([number, group]) => {
      const plain = group.map(({ id, vector, payload }) => ({ id, vector, payload }));
      const possible = this.group(number);
      return possible.settle(plain)
        ? []
        : [`group ${number} is ${summary(plain)} where only ${possible.all().map(summary).join(' or ')} can be`];
    });
  }
}

/** All that a value may be. */
export class Possible<Value> {
  #values: Map<string, Value>;

  constructor(value: Value) {
    this.#values = new Map([[keyOf(value), value]]);
  }

  copy(): Possible<Value> {
    const copy = new Possible(this.all()[0] as Value);
    copy.#values = new Map(this.#values);
    return copy;
  }

  all(): Value[] {
    return [...this.#values.values()];
  }

  note(outcome: Outcome, effect: (value: Value) => Value): void {
    if (outcome === 'refused') return;
    const after = this.all().map(effect);
    this.#values = new Map([...(outcome === 'unknown' ? this.all() : []), ...after].map((value) => [keyOf(value), value]));
  }

  /** Whether it can be so; then it is so. */
  settle(value: Value): boolean {
    const key = keyOf(value);
    if (!this.#values.has(key)) return false;
    this.#values = new Map([[key, value]]);
    return true;
  }
}

/** The same for equal values, whatever the order of their keys. */
function keyOf(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** How many points of which payload, without long texts. */
function summary(group: Group): string {
  const counts = new Map<string, number>();
  for (const { payload } of group) {
    const shown = JSON.stringify(payload, (_, value) => (typeof value === 'string' ? value.slice(0, 10) : value));
    counts.set(shown, (counts.get(shown) ?? 0) + 1);
  }
  return `[${[...counts].map(([payload, count]) => `${count} × ${payload}`).join(', ')}]`;
}
