/** Requests that ask for absurdly much, each of its kind, in a size that is drawn. They are well-formed, or nearly so. */

import type { RandomNumbers } from '../../../ops/random.js';

export interface AbsurdRequest {
  readonly kind: string;
  readonly method: string;
  /** Within the collection, with its query. */
  readonly path: string;
  readonly body: Buffer;
  /** Milliseconds that the request has. */
  readonly timeoutMs: number;
}

/** What decides about a request before its body is made. */
export interface AbsurdChoice {
  readonly kind: string;
  readonly timeoutMs: number;
  /** Place of its size in the sizes there are. */
  readonly sizeAt: number;
}

export const DIM = 32;
export const POINTS = 20_000;
const VECTOR = `[${Array.from({ length: DIM }, (_, at) => at / DIM).join()}]`;
/** Reads have a minute unless they say otherwise; here they say so. */
const SECONDS_MAX = 3;

type Make = (size: number) => readonly [path: string, body: string];

const KINDS: Readonly<Record<string, Make>> = {
  'a batch of queries': (size) => ['points/query/batch', `{"searches":[${many(size, `{"query":${VECTOR},"limit":1}`)}]}`],
  'a batch of exact searches': (size) => [
    'points/search/batch',
    `{"searches":[${many(size, `{"vector":${VECTOR},"limit":100,"params":{"exact":true}}`)}]}`,
  ],
  'a matrix': (size) => ['points/search/matrix/pairs', `{"sample":${size},"limit":3}`],
  'a matrix of all neighbours': (size) => ['points/search/matrix/offsets', `{"sample":${size},"limit":${size}}`],
  'a filter of many ranges': (size) => ['points/count', `{"filter":{"should":[${many(size, '{"key":"n","range":{"gt":3}}')}]}}`],
  'a filter of many matches': (size) => ['points/count', `{"filter":{"must_not":[${many(size, '{"key":"tag","match":{"value":"a"}}')}]}}`],
  'a match of many values': (size) => ['points/count', `{"filter":{"must":[{"key":"n","match":{"any":[${numbers(size)}]}}]}}`],
  'a nested filter': (size) => ['points/count', `{"filter":${'{"must":['.repeat(size)}${']}'.repeat(size)}}`],
  'all ids': (size) => ['points', `{"ids":[${numbers(size)}],"with_vector":true}`],
  'ids in a filter': (size) => ['points/scroll', `{"filter":{"must":[{"has_id":[${numbers(size)}]}]},"limit":10}`],
  'a large page': (size) => ['points/query', `{"query":${VECTOR},"limit":${size},"with_vector":true,"with_payload":true}`],
  'an ordered page': (size) => ['points/scroll', `{"order_by":"n","limit":${size},"with_vector":true}`],
  groups: (size) => ['points/query/groups', `{"query":${VECTOR},"group_by":"n","limit":${size},"group_size":${size}}`],
  'many prefetches': (size) => [
    'points/query',
    `{"prefetch":[${many(size, `{"query":${VECTOR},"limit":10}`)}],"query":{"fusion":"rrf"},"limit":10}`,
  ],
  'deep prefetches': (size) => ['points/query', `{"query":1,${'"prefetch":{"query":1,'.repeat(size)}"limit":5${'}'.repeat(size)}}`],
  'many examples': (size) => ['points/query', `{"query":{"recommend":{"positive":[${numbers(size)}],"strategy":"best_score"}}}`],
  'a context of many pairs': (size) => ['points/query', `{"query":{"context":[${many(size, '{"positive":1,"negative":2}')}]}}`],
  'a long formula': (size) => [
    'points/query',
    `{"prefetch":{"query":${VECTOR},"limit":1000},"query":{"formula":{"sum":[${many(size, '{"mult":["$score",2,"n"]}')}]}}}`,
  ],
  'a deep formula': (size) => [
    'points/query',
    `{"prefetch":{"query":1},"query":{"formula":${'{"neg":'.repeat(size)}1${'}'.repeat(size)}}}`,
  ],
  'all values': (size) => ['facet', `{"key":"tag","limit":${size},"exact":true}`],
  'deep lists': (size) => ['points/query', `{"query":${'['.repeat(size)}${']'.repeat(size)}}`],
  'a long number': (size) => ['points/query', `{"query":[${'1'.repeat(size)}]}`],
  'a long name': (size) => ['points/count', `{"${'n'.repeat(size)}":1}`],
  'many names': (size) => ['points/count', `{${Array.from({ length: Math.min(size, 200_000) }, (_, at) => `"n${at}":1`).join()}}`],
  'a large write': (size) => ['points?wait=true', `{"points":[${pointsAgain(size)}]}`],
  'a large write that nobody waits for': (size) => ['points?wait=false', `{"points":[${pointsAgain(size)}]}`],
  'a payload that is deep': (size) => ['points/payload', `{"payload":{"a":${'[1,'.repeat(size)}1${']'.repeat(size)}},"points":[1]}`],
};

/** Kinds that are not a `POST`. */
const METHODS: Readonly<Record<string, string>> = { 'a large write': 'PUT', 'a large write that nobody waits for': 'PUT' };

/** Sizes, from what is usual to what is absurd. */
const SIZES = [3, 100, 1000, 10_000, 100_000, 1_000_000];
const BODY_BYTES_MAX = 30 << 20;

export function absurdChoice(random: RandomNumbers): AbsurdChoice {
  const kinds = Object.keys(KINDS);
  const kind = kinds[random.integer(kinds.length)] as string;
  return { kind, timeoutMs: (random.integer(SECONDS_MAX) + 1) * 1000, sizeAt: random.integer(SIZES.length) };
}

/** In the next smaller size where the body would be larger than a body may be. */
export function madeRequest({ kind, sizeAt, timeoutMs }: AbsurdChoice): AbsurdRequest {
  for (let at = sizeAt; ; at--) {
    const [path, body] = (KINDS[kind] as Make)(Math.min(SIZES[at] as number, BODY_BYTES_MAX / 50));
    if (body.length > BODY_BYTES_MAX && at > 0) continue;
    // Not of Node's pool, so that it can be handed to another thread. All texts are of ASCII.
    const bytes = Buffer.allocUnsafeSlow(body.length);
    bytes.write(body, 'latin1');
    return {
      kind,
      method: METHODS[kind] ?? 'POST',
      path: `${path}${path.includes('?') ? '&' : '?'}timeout=${timeoutMs / 1000}`,
      body: bytes,
      timeoutMs,
    };
  }
}

function many(count: number, text: string): string {
  return `${`${text},`.repeat(Math.min(count, Math.floor(BODY_BYTES_MAX / (text.length + 1))) - 1)}${text}`;
}

/** Points that are there already, with vectors of their own. */
function pointsAgain(count: number): string {
  const text = (at: number): string =>
    `{"id":${at % POINTS},"vector":[${at},${VECTOR.slice(3)},"payload":{"n":${at % 5000},"tag":"tag-${at % 5000}"}}`;
  return Array.from({ length: Math.min(count, Math.floor(BODY_BYTES_MAX / text(POINTS - 1).length)) }, (_, at) => text(at)).join();
}

function numbers(count: number): string {
  return Array.from({ length: count }, (_, at) => at).join();
}
