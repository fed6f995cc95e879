/** The vectors of a collection that is made for the points of a file, as its first point has them. */

import { wrongArguments } from '../client/tool.js';

interface InferredVectors {
  readonly vectors?: unknown;
  readonly sparse_vectors?: Readonly<Record<string, object>>;
}

/** vector: of a point, as the API takes it. Errors: ToolError where it has none. */
export function inferredVectors(vector: unknown, distance: string): InferredVectors {
  if (Array.isArray(vector)) return { vectors: dense(vector, distance) };
  const named = Object.entries((vector ?? {}) as Record<string, unknown>);
  if (named.length === 0) throw wrongArguments('the first row has no vector: name its column with --vector, or make the collection first');
  const lists = named.filter(([, value]) => Array.isArray(value)).map(([name, value]) => [name, dense(value as unknown[], distance)]);
  const others = named
    .filter(([, value]) => !Array.isArray(value))
    .map(([name, value]) => [name, isText(value) ? { modifier: 'idf' } : {}]);
  return {
    ...(lists.length === 0 ? {} : { vectors: Object.fromEntries(lists) }),
    ...(others.length === 0 ? {} : { sparse_vectors: Object.fromEntries(others) }),
  };
}

function dense(list: readonly unknown[], distance: string): object {
  const [first] = list;
  return Array.isArray(first)
    ? { size: first.length, distance, multivector_config: { comparator: 'max_sim' } }
    : { size: list.length, distance };
}

function isText(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'text' in value;
}
