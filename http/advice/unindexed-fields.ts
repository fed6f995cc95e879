/** Fields that filters of reads and writes ask for and that have no payload index, as readers and writers tell of them. */

import type { FieldType } from '../../protocols/model/collection.js';
import type { SeenScan } from '../../storage/reader/seen-scans.js';
import type { Issue } from './issue.js';

/** Whether a collection has a payload index for the field; null: there is no such collection. */
export type HasIndex = (collection: string, field: string) => boolean | null;

interface Seen {
  readonly collection: string;
  readonly field: string;
  readonly sinceMs: number;
  reads: number;
  rows: number;
  milliseconds: number;
  /** Rows by the type of the index that would have spared them. */
  readonly types: Map<FieldType, number>;
}

/** Clients choose fields, so there is a bound on how many are kept. */
const FIELDS_MAX = 1000;

export class UnindexedFields {
  readonly #seen = new Map<string, Seen>();

  /** nowMs: the date. */
  constructor(private readonly nowMs: () => number) {}

  note(scans: readonly SeenScan[]): void {
    for (const scan of scans) {
      const { collection, field, milliseconds, reads, rows, type } = scan;
      const key = JSON.stringify([collection, field]);
      let seen = this.#seen.get(key);
      if (seen === undefined) {
        if (this.#seen.size >= FIELDS_MAX) continue;
        seen = { collection, field, sinceMs: this.nowMs(), reads: 0, rows: 0, milliseconds: 0, types: new Map() };
        this.#seen.set(key, seen);
      }
      seen.reads += reads;
      seen.rows += rows;
      seen.milliseconds += milliseconds;
      seen.types.set(type, (seen.types.get(type) ?? 0) + rows);
    }
  }

  clear(): void {
    this.#seen.clear();
  }

  /** The costliest first. What has got an index, or has lost its collection, is forgotten. */
  issues(hasIndex: HasIndex): Issue[] {
    for (const [key, { collection, field }] of [...this.#seen]) if (hasIndex(collection, field) !== false) this.#seen.delete(key);
    return [...this.#seen.values()].sort((one, other) => other.milliseconds - one.milliseconds).map(issueOf);
  }
}

function issueOf({ collection, field, milliseconds, reads, rows, sinceMs, types }: Seen): Issue {
  const [[type]] = [...types].sort(([, one], [, other]) => other - one) as [[FieldType, number]];
  const each = rows / reads;
  return {
    id: `UNINDEXED_FIELD/${collection}/${field}`,
    description:
      `Filters on \`${field}\` of collection \`${collection}\` read payloads, as the field has no payload index: ` +
      `${counted(reads, 'request')}, ${counted(rows, 'payload')} (${counted(Math.round(each), 'payload')} each), ` +
      `${(milliseconds / 1000).toPrecision(3)} s of threads' time.`,
    solution: `Make a payload index of type ${type} for \`${field}\`. Filters are then decided without payloads.`,
    timestamp: new Date(sinceMs).toISOString(),
    count: reads,
    collection,
    action: {
      method: 'PUT',
      path: `/collections/${encodeURIComponent(collection)}/index?wait=true`,
      body: { field_name: field, field_schema: type },
    },
  };
}

function counted(number: number, word: string): string {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`;
}
