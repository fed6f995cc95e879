/**
 * Words to write schemas with. A schema is an OpenAPI 3.0 schema object as it is printed, and its type says what it
 * describes, so that TypeScript types of requests and answers come from the schemas (`ValueOf`).
 */

import type { SCHEMAS } from './schemas.js';

/** An OpenAPI 3.0 schema object, as far as it is used here. */
export interface SchemaObject {
  readonly $ref?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array';
  readonly format?: string;
  readonly enum?: readonly (string | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly nullable?: boolean;
  readonly items?: SchemaObject;
  readonly properties?: { readonly [name: string]: SchemaObject };
  readonly required?: readonly string[];
  readonly additionalProperties?: SchemaObject | boolean;
  readonly anyOf?: readonly SchemaObject[];
}

declare const SHAPE: unique symbol;

/** A schema and, for the compiler alone, the shape it describes. */
export type Schema<Shape = unknown> = SchemaObject & { readonly [SHAPE]?: Shape };

type Properties = { readonly [name: string]: Schema };
type ShapeOf<S> = S extends { readonly [SHAPE]?: infer Shape } ? Shape : never;

/** The type of the values that a schema describes. */
export type ValueOf<S> = FromShape<NonNullable<ShapeOf<S>>>;

type FromShape<Shape> = Shape extends { readonly is: infer Value }
  ? Value
  : Shape extends { readonly ref: infer Name extends keyof typeof SCHEMAS }
    ? ValueOf<(typeof SCHEMAS)[Name]>
    : Shape extends { readonly fields: readonly [infer Required, infer Optional] }
      ? { [Name in keyof Required]: ValueOf<Required[Name]> } & { [Name in keyof Optional]?: ValueOf<Optional[Name]> | null | undefined }
      : Shape extends { readonly list: infer Item }
        ? ValueOf<Item>[]
        : Shape extends { readonly map: infer Item }
          ? { [name: string]: ValueOf<Item> }
          : Shape extends { readonly any: infer Choice }
            ? ValueOf<Choice>
            : never;

/** A schema of values that the compiler knows as `Value`. */
export function leaf<Value>(schema: SchemaObject): Schema<{ is: Value }> {
  return schema;
}

export const TEXT = leaf<string>({ type: 'string' });
export const FLAG = leaf<boolean>({ type: 'boolean' });
export const NUMBER = leaf<number>({ type: 'number', format: 'double' });
export const COUNT = integer(0);
/** Of reads. */
export const EXPLAIN = {
  explain: leaf<boolean>({ type: 'boolean', description: 'Say how the answer came about, in `explain` beside `result`.' }),
};
export const ANYTHING = leaf<unknown>({ description: 'Any JSON value.' });

/** Unsigned, min to max, both inclusive. */
export function integer(min: number, max?: number): Schema<{ is: number }> {
  return leaf({ type: 'integer', format: 'uint64', minimum: min, ...(max === undefined ? {} : { maximum: max }) });
}

export function numberWithin(min: number, max?: number): Schema<{ is: number }> {
  return leaf({ type: 'number', format: 'double', minimum: min, ...(max === undefined ? {} : { maximum: max }) });
}

export function words<const Word extends string>(...list: readonly Word[]): Schema<{ is: Word }> {
  return leaf({ type: 'string', enum: list });
}

export function list<Item extends Schema>(items: Item, minItems?: number): Schema<{ list: Item }> {
  return minItems === undefined ? { type: 'array', items } : { type: 'array', items, minItems };
}

/** Values by name. */
export function map<Item extends Schema>(items: Item): Schema<{ map: Item }> {
  return { type: 'object', additionalProperties: items };
}

/** An object with the fields it must have and those it may have. Null stands for a field that is left out. */
export function fields<Required extends Properties, Optional extends Properties = Record<never, never>>(
  required: Required,
  optional?: Optional,
): Schema<{ fields: [Required, Optional] }> {
  const names = Object.keys(required);
  const nullable = Object.entries(optional ?? {}).map(([name, schema]): [string, SchemaObject] => [name, orNull(schema)]);
  return {
    type: 'object',
    ...(names.length === 0 ? {} : { required: names }),
    properties: { ...required, ...Object.fromEntries(nullable) },
  };
}

/** One of several. */
export function any<Choices extends readonly Schema[]>(...choices: Choices): Schema<{ any: Choices[number] }> {
  return { anyOf: choices };
}

/** The schema of this name in `SCHEMAS`. */
export function ref<const Name extends string>(name: Name): Schema<{ ref: Name }> {
  return { $ref: `#/components/schemas/${name}` };
}

export function described<Shape>(description: string, schema: Schema<Shape>): Schema<Shape> {
  // Beside a `$ref` OpenAPI 3.0 reads nothing.
  return schema.$ref === undefined ? { ...schema, description } : { anyOf: [schema], description };
}

function orNull(schema: SchemaObject): SchemaObject {
  return schema.$ref === undefined ? { ...schema, nullable: true } : { anyOf: [schema], nullable: true };
}
