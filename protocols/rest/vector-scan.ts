/**
 * Reads query vectors straight from the bytes of a request: number arrays at the places where vectors stand are
 * taken out as Float32Arrays, and what is left is a short text for the JSON parser. On a body of 784 floats this costs
 * some two fifths of `JSON.parse` (see `test/protocols/rest/vector-scan.test.ts` for what must come out the same).
 *
 * A body's vectors are taken all or none: the decoders are told only once which it was. The components of sparse
 * vectors are no vectors in this sense; they stay where they are.
 */

import { isUtf8 } from 'node:buffer';
import { ByteScanner, OPEN_LIST, OPEN_OBJECT, type ScannedBody } from './byte-scan.js';

/** Steps over the value of a key; false: gives up. */
type Step = (scanner: ByteScanner, depth: number) => boolean;

/** Deeper prefetches are left to the parser; decoding refuses them anyway. */
const DEPTH_MAX = 100;

/**
 * The body without its vectors, or null when there is nothing to gain (no vector, or something unexpected).
 * Vectors stand where queries, prefetches, examples and pairs of examples have them, in a batch and alone.
 * Values beyond a float32 come as infinities.
 */
export function scanVectors(bytes: Uint8Array): ScannedBody | null {
  if (!isUtf8(bytes)) return null;
  const scanner = new ByteScanner(bytes);
  if (!request(scanner, 0) || scanner.vectors.length === 0) return null;
  return scanner.rest();
}

const request: Step = (scanner, depth) => members(scanner, REQUEST, depth);

/** A vector, or an object that may hold some. */
function vectorOr(places: Readonly<Record<string, Step>>): Step {
  return (scanner, depth) => {
    if (scanner.peek() === OPEN_LIST) return scanner.inputList();
    return membersOrAny(scanner, places, depth);
  };
}

const input: Step = (scanner) => (scanner.peek() === OPEN_LIST ? scanner.inputList() : scanner.skipValue());
const inputs = listOr(input);

/** A list of what `one` steps over, or one of them. */
function listOr(one: Step): Step {
  return (scanner, depth) => (scanner.peek() === OPEN_LIST ? scanner.items(() => one(scanner, depth)) : one(scanner, depth));
}

function objectWith(places: Readonly<Record<string, Step>>): Step {
  return (scanner, depth) => membersOrAny(scanner, places, depth);
}

function membersOrAny(scanner: ByteScanner, places: Readonly<Record<string, Step>>, depth: number): boolean {
  return scanner.peek() === OPEN_OBJECT ? members(scanner, places, depth) : scanner.skipValue();
}

function members(scanner: ByteScanner, places: Readonly<Record<string, Step>>, depth: number): boolean {
  if (depth > DEPTH_MAX) return false;
  return scanner.members((key) => {
    const step = Object.hasOwn(places, key) ? places[key] : undefined;
    return step === undefined ? scanner.skipValue() : step(scanner, depth + 1);
  });
}

const pairs = listOr(objectWith({ positive: input, negative: input }));
const examples = { positive: inputs, negative: inputs, target: input, context: pairs };

/** Where vectors stand in a request of any kind. */
const REQUEST: Readonly<Record<string, Step>> = {
  query: vectorOr({
    nearest: input,
    recommend: objectWith(examples),
    discover: objectWith(examples),
    context: pairs,
    relevance_feedback: objectWith({ target: input, feedback: listOr(objectWith({ example: input })) }),
  }),
  vector: vectorOr({ vector: input }),
  prefetch: listOr(request),
  searches: listOr(request),
  ...examples,
};
