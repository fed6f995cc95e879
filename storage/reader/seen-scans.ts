/**
 * Filters for which a reader or writer had to read payloads, as no index has their fields: counted here, and told to the main thread together, so that
 * they cost it nothing for each request.
 */

import type { FieldSchema, FieldType } from '../../protocols/model/collection.js';
import type { Condition } from '../../protocols/model/filter.js';
import { wantedIndexes } from '../../query/filter/wanted-indexes.js';

/** Of one field of a collection, since the last time that was told. */
export interface SeenScan {
  readonly collection: string;
  readonly field: string;
  /** Of the index that would spare it. */
  readonly type: FieldType;
  /** Reads, the portions of reads that fell to one node, or operations by filter. */
  readonly reads: number;
  /** Payloads that were read. */
  readonly rows: number;
  /** Milliseconds of a reader's thread in which they were. */
  readonly milliseconds: number;
}

/** Fewer payloads cost less than what is gained. */
const ROWS_MIN = 64;
/** Clients choose fields, so there is a bound on how many are told together. */
const SCANS_MAX = 256;
const TELL_MS = 500;

type Counted = { -readonly [Name in keyof SeenScan]: SeenScan[Name] } & { lastRead: number };

export class SeenScans {
  readonly #scans = new Map<string, Counted>();
  #read = 0;

  constructor(
    /** Called some time after the first scan, with all of them. */
    private readonly tell: (scans: readonly SeenScan[]) => void,
    private readonly monotonicMs: () => number = () => performance.now(),
    /** Runs `run` some time later. */
    private readonly later: (run: () => void) => void = (run) => void setTimeout(run, TELL_MS).unref(),
  ) {}

  /** What follows belongs to another read. */
  nextRead(): void {
    this.#read += 1;
  }

  /** Called before `rows` payloads of a segment are read for these conditions; the answer is called when they are read. Undefined: nothing is to be told. */
  begin(
    collection: string,
    conditions: readonly Condition[],
    schemaOf: (field: string) => FieldSchema | undefined,
    rows: number,
  ): (() => void) | undefined {
    if (rows < ROWS_MIN) return undefined;
    const wanted = wantedIndexes(conditions, schemaOf);
    if (wanted.length === 0) return undefined;
    const begunMs = this.monotonicMs();
    return () => {
      const milliseconds = this.monotonicMs() - begunMs;
      for (const { field, type } of wanted) this.#count({ collection, field, type, rows, milliseconds });
    };
  }

  #count({ collection, field, milliseconds, rows, type }: Omit<SeenScan, 'reads'>): void {
    const key = JSON.stringify([collection, field, type]);
    let counted = this.#scans.get(key);
    if (counted === undefined) {
      if (this.#scans.size >= SCANS_MAX) return;
      counted = { collection, field, type, reads: 0, rows: 0, milliseconds: 0, lastRead: -1 };
      if (this.#scans.size === 0) this.later(() => this.#tellAll());
      this.#scans.set(key, counted);
    }
    counted.rows += rows;
    counted.milliseconds += milliseconds;
    // A read looks at several segments.
    if (counted.lastRead !== this.#read) counted.reads += 1;
    counted.lastRead = this.#read;
  }

  #tellAll(): void {
    const scans = [...this.#scans.values()].map(({ lastRead: _, ...scan }) => scan);
    this.#scans.clear();
    this.tell(scans);
  }
}
