/**
 * BM25: texts as sparse vectors whose dot product ranks documents. A document's vector holds how often each token occurs,
 * damped and weighed by the length of the text; a query's holds 1 for each token. How rare a token is among all
 * documents is not known here: that part is the collection's, with `modifier: idf` on the sparse vector.
 *
 * The index of a token is the absolute value of the MurmurHash3 of its UTF-8, as clients that make such vectors
 * themselves have it. Tokens that fall together (one pair in 2^31) count as one.
 */

import type { Bm25Options } from '../../protocols/model/text.js';
import { type SparseVector, sparseVector } from '../../protocols/model/vector.js';
import { murmur3 } from '../../vectors/murmur3.js';
import { analyzerFor } from './analyzer.js';

/** The vector of a document; empty for a text without tokens. */
export function bm25Document(text: string, options: Bm25Options): SparseVector {
  const { k, b, avgLen } = options;
  const tokens = analyzerFor(options).document(text);
  const frequencies = new Map<number, number>();
  for (const token of tokens) {
    const index = tokenIndex(token);
    frequencies.set(index, (frequencies.get(index) ?? 0) + 1);
  }
  const damping = k * (1 - b + (b * tokens.length) / avgLen);
  const values = Float32Array.from(frequencies.values(), (frequency) => (frequency * (k + 1)) / (frequency + damping));
  return sparseVector([...frequencies.keys()], values) as SparseVector;
}

/** The vector of a query: 1 for each of its tokens, however often it occurs. */
export function bm25Query(text: string, options: Bm25Options): SparseVector {
  const indices = [...new Set(analyzerFor(options).query(text).map(tokenIndex))];
  return sparseVector(indices, new Float32Array(indices.length).fill(1)) as SparseVector;
}

const encoder = new TextEncoder();
const ascii = new Uint8Array(64);

/** The component that a token stands for. */
export function tokenIndex(token: string): number {
  // Most tokens are short and of ASCII letters; an encoder takes ten times as long for them as hashing does.
  if (!writeAscii(token)) {
    const bytes = encoder.encode(token);
    return Math.abs(murmur3(bytes, bytes.length));
  }
  return Math.abs(murmur3(ascii, token.length));
}

/** Whether the token is in `ascii` now. */
function writeAscii(token: string): boolean {
  if (token.length > ascii.length) return false;
  for (let i = 0; i < token.length; i++) {
    const code = token.charCodeAt(i);
    if (code > 0x7f) return false;
    ascii[i] = code;
  }
  return true;
}
