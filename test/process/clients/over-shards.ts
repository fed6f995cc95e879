/** Answers of a collection of several shards beside those of one: each shard has numbers of its own for operations. */

import assert from 'node:assert/strict';
import { compared } from './answers.js';
import type { Outcome } from './doors.js';

/** None when they are alike, else one text that says what was found instead. what: the request. */
export function difference(found: Outcome, wanted: Outcome, what: string): string[] {
  try {
    assert.deepEqual(comparedOverShards(found), comparedOverShards(wanted), what);
    return [];
  } catch (error) {
    return [
      `${what}: ${(error as Error).message} ${JSON.stringify(found).slice(0, 600)} instead of ${JSON.stringify(wanted).slice(0, 600)}`,
    ];
  }
}

function comparedOverShards(outcome: Outcome): unknown {
  return 'failed' in outcome ? outcome : withoutNumbers(compared(outcome.result));
}

function withoutNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNumbers);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([key]) => key !== 'version' && key !== 'operation_id');
  return Object.fromEntries(members.map(([key, member]) => [key, withoutNumbers(member)]));
}
