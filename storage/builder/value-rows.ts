/** Rows of a new segment by the values of its indexed fields: what sub-graphs are built over, and how tenants are kept together. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import { type JsonPath, pathOf } from '../../protocols/model/json-path.js';
import type { Payload } from '../../protocols/model/payload.js';
import { rowTerms } from '../../query/filter/lookup.js';

/** Values of one field. Values have numbers, in the order they come in. */
export interface FieldValues {
  readonly field: string;
  readonly isTenant: boolean;
  /** As text. */
  readonly names: readonly string[];
  /** Each row of each value: a row with several values is there several times. */
  readonly rows: readonly number[];
  readonly values: readonly number[];
}

/** Rows of a value, ascending. */
export interface ValueRows {
  readonly field: string;
  readonly value: string;
  readonly rows: Uint32Array;
}

/** A value whose graph has a layer to be in. */
export interface PlacedValue extends ValueRows {
  readonly layer: number;
}

/** Longer texts are no values that many rows share. */
const VALUE_CHARACTERS_MAX = 512;

/** Collects the values of fields, row after row. */
export class ValueCollector {
  private readonly columns: readonly Column[];

  constructor(fields: readonly (readonly [string, FieldSchema])[]) {
    this.columns = fields.map(([field, schema]) => new Column(field, schema, pathOf(field)));
  }

  add(row: number, payload: Payload): void {
    for (const column of this.columns) column.add(row, payload);
  }

  get fields(): readonly FieldValues[] {
    return this.columns;
  }
}

class Column implements FieldValues {
  readonly names: string[] = [];
  readonly rows: number[] = [];
  readonly values: number[] = [];
  private readonly numbers = new Map<string, number>();

  constructor(
    readonly field: string,
    private readonly schema: FieldSchema,
    private readonly path: JsonPath,
  ) {}

  get isTenant(): boolean {
    return this.schema.params?.is_tenant === true;
  }

  add(row: number, payload: Payload): void {
    for (const term of rowTerms(this.schema, payload, this.path).terms) {
      const name = String(term);
      if (name.length > VALUE_CHARACTERS_MAX) continue;
      let value = this.numbers.get(name);
      if (value === undefined) {
        value = this.names.length;
        this.numbers.set(name, value);
        this.names.push(name);
      }
      this.rows.push(row);
      this.values.push(value);
    }
  }
}

/** Values of `rowsMin` rows or more: field after field, those of most rows first. */
export function frequentValues(fields: readonly FieldValues[], rowsMin: number): ValueRows[] {
  return fields.flatMap((field) => frequentOf(field, rowsMin));
}

function frequentOf({ field, names, rows, values }: FieldValues, rowsMin: number): ValueRows[] {
  const counts = new Uint32Array(names.length);
  for (const value of values) counts[value] = (counts[value] as number) + 1;
  const lists = new Map<number, Uint32Array>();
  counts.forEach((count, value) => {
    if (count >= rowsMin) lists.set(value, new Uint32Array(count));
  });
  const filled = new Uint32Array(names.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    const list = lists.get(value);
    if (list === undefined) continue;
    const at = filled[value] as number;
    list[at] = rows[i] as number;
    filled[value] = at + 1;
  }
  const found = [...lists].map(([value, list]) => ({ field, value: names[value] as string, rows: list }));
  return found.sort((a, b) => b.rows.length - a.rows.length);
}

/**
 * Gives each value the first layer where none of its rows is taken; values that fit in none of `layersMax` are left out.
 * rows: of the segment.
 */
export function placeValues(values: readonly ValueRows[], rows: number, layersMax: number): PlacedValue[] {
  const taken: Uint8Array[] = [];
  const placed: PlacedValue[] = [];
  for (const value of values) {
    let layer = taken.findIndex((marks) => value.rows.every((row) => marks[row] === 0));
    if (layer < 0) {
      if (taken.length === layersMax) continue;
      layer = taken.push(new Uint8Array(rows)) - 1;
    }
    const marks = taken[layer] as Uint8Array;
    for (const row of value.rows) marks[row] = 1;
    placed.push({ ...value, layer });
  }
  return placed;
}

/**
 * The tenant of each row (of several the first) as a number, u32 [rows]; rows without one have the highest. Null where no
 * field is the tenant.
 */
export function tenantOf(fields: readonly FieldValues[], rows: number): Uint32Array | null {
  const tenants = fields.find((field) => field.isTenant);
  if (tenants === undefined) return null;
  const of = new Uint32Array(rows).fill(tenants.names.length);
  for (let i = tenants.rows.length - 1; i >= 0; i--) of[tenants.rows[i] as number] = tenants.values[i] as number;
  return of;
}
