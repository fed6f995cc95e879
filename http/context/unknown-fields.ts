/**
 * Fields of requests' bodies that the API does not have. They are ignored, and told in a header of the answer, a line of the log and the
 * issues of the node; with `service.unknown_fields: refuse` they are errors.
 */

import type { Log } from '../../actors/runtime/ports.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import type { UnknownField, UnknownFields } from '../../protocols/model/unknown-fields.js';
import { OPERATION_SCHEMAS, type OperationName } from '../../protocols/openapi/operations.js';
import { findUnknownFields } from '../../protocols/openapi/unknown-fields.js';
import type { Issue } from '../advice/issue.js';

/** One field of one operation, and how many requests had it. */
export interface UnknownFieldCount {
  readonly operation: string;
  readonly field: UnknownField;
  readonly requests: number;
}

interface Known {
  readonly count: UnknownFieldCount;
  readonly sinceMs: number;
}

/** Clients choose names, so there is a bound on how many are kept. */
const FIELDS_MAX = 1000;
/** One line of the log in this time names all new fields. */
const LOG_EVERY_MS = 10_000;
const LOGGED_MAX = 16;
const HEADER = 'troupe-unknown-fields';

export class UnknownFieldCounts {
  readonly #known = new Map<string, Known>();
  #unlogged: string[] = [];
  #loggedMs = Number.NEGATIVE_INFINITY;

  /** refuse: `service.unknown_fields`. */
  constructor(
    private readonly options: {
      readonly refuse: boolean;
      readonly log: Pick<Log, 'warn'>;
      readonly nowMs: () => number;
      readonly monotonicMs: () => number;
    },
  ) {}

  get refuse(): boolean {
    return this.options.refuse;
  }

  note({ field, operation, requests }: UnknownFieldCount): void {
    const key = keyOf(operation, field);
    const known = this.#known.get(key);
    if (known === undefined && this.#known.size >= FIELDS_MAX) return;
    const count = { operation, field, requests: (known?.count.requests ?? 0) + requests };
    this.#known.set(key, { count, sinceMs: known?.sinceMs ?? this.options.nowMs() });
    if (known === undefined) this.#log(count);
  }

  issues(): Issue[] {
    return [...this.#known].map(([key, { count, sinceMs }]) => ({
      id: `UNKNOWN_FIELD/${key}`,
      description: describe(count),
      solution: solve(count.field),
      timestamp: new Date(sinceMs).toISOString(),
      count: count.requests,
    }));
  }

  clear(): void {
    this.#known.clear();
  }

  #log(count: UnknownFieldCount): void {
    if (this.#unlogged.length < LOGGED_MAX) this.#unlogged.push(describe(count));
    const nowMs = this.options.monotonicMs();
    if (nowMs - this.#loggedMs < LOG_EVERY_MS) return;
    this.#loggedMs = nowMs;
    this.options.log.warn('requests have fields that are not known; they are ignored', { fields: this.#unlogged.join('; ') });
    this.#unlogged = [];
  }
}

/** What a reader counts until it tells the main thread. */
export class UnknownFieldBatch {
  readonly #counts = new Map<string, UnknownFieldCount>();

  /** Whether this is the first one. */
  note(operation: string, found: readonly UnknownField[]): boolean {
    const isFirst = this.#counts.size === 0;
    for (const field of found) {
      const key = keyOf(operation, field);
      const known = this.#counts.get(key);
      if (known !== undefined || this.#counts.size < FIELDS_MAX)
        this.#counts.set(key, { operation, field, requests: (known?.requests ?? 0) + 1 });
    }
    return isFirst;
  }

  take(): UnknownFieldCount[] {
    const counts = [...this.#counts.values()];
    this.#counts.clear();
    return counts;
  }
}

export function noUnknownFields(refuse: boolean): UnknownFields {
  return { refuse, found: [] };
}

/** What looks for unknown fields in the body of an operation of the node; undefined for operations without one. */
export function seeUnknown(operation: OperationName, into: UnknownFields): ((body: JsonValue) => void) | undefined {
  return 'body' in OPERATION_SCHEMAS[operation] ? (body) => findUnknownFields(operation, body, into) : undefined;
}

const NO_HEADERS: readonly string[] = [];

/** Headers of the answer: name and value in turn. */
export function unknownHeaders(fields: UnknownFields | undefined): readonly string[] {
  if (fields === undefined || fields.found.length === 0) return NO_HEADERS;
  return [HEADER, fields.found.map(({ name }) => asHeader(name)).join(', ')];
}

/** Other characters than visible ASCII, and those that part the names, as `%` and their bytes. */
function asHeader(name: string): string {
  return name.replace(/[^!-~]|[,%]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}

function keyOf(operation: string, { name }: UnknownField): string {
  return `${operation}/${name}`;
}

function describe({ field: { meant, name }, operation }: UnknownFieldCount): string {
  const hint = meant === null ? '' : ` (did you mean \`${meant}\`?)`;
  return `\`${name}\` of ${operation}${hint}`;
}

function solve({ meant, name }: UnknownField): string {
  const rename = meant === null ? 'Remove' : `Rename to \`${meant}\`, or remove`;
  return `${rename} the field \`${name}\` in the requests. With \`service.unknown_fields: refuse\` they are refused instead.`;
}
