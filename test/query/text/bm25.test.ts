import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SparseVector } from '../../../protocols/model/vector.js';
import { bm25Document, bm25Query, tokenIndex } from '../../../query/text/bm25.js';
import { murmur3 } from '../../../vectors/murmur3.js';

const ENGLISH = { k: 1.2, b: 0.75, avgLen: 256, stopwords: 'english', stemmer: { type: 'snowball', language: 'english' } } as const;
const PLAIN = { k: 1.2, b: 0.75, avgLen: 256 };

/** Values by the tokens they stand for. */
function byToken({ indices, values }: SparseVector, tokens: readonly string[]): Record<string, number> {
  const names = new Map(tokens.map((token) => [tokenIndex(token), token]));
  return Object.fromEntries([...indices].map((index, at) => [names.get(index) ?? index, Number((values[at] as number).toFixed(5))]));
}

test('a token stands for the absolute value of its MurmurHash3', () => {
  // 0x3c2569b2; 0xb3dd93fa as an int32 is negative.
  assert.deepEqual(['', 'a', 'abc', 'hello'].map(tokenIndex), [0, 0x3c2569b2, 2 ** 32 - 0xb3dd93fa, 0x248bfa47]);
  assert.equal(tokenIndex('The quick brown fox jumps over the lazy dog'), 0x2e4ff723);
  // Longer than most, and of letters beyond ASCII: the hashes of their UTF-8.
  assert.equal(tokenIndex('x'.repeat(65)), Math.abs(murmur3(Buffer.alloc(65, 'x'), 65)));
  assert.equal(tokenIndex('größe'), Math.abs(murmur3(Buffer.from('größe'), 7)));
  assert.ok([...'abcdefghijk'].every((_, at, all) => tokenIndex(all.slice(0, at).join('')) <= 2 ** 31));
});

test('the values of a document are those worked by hand', () => {
  // quick, brown, fox, fox: 4 tokens, so k·(1 - b + b·4/256) = 1.2·(0.25 + 0.01171875) = 0.3140625.
  // One occurrence: 2.2 / 1.3140625; two: 4.4 / 2.3140625.
  const vector = bm25Document('The QUICK brown fox and the foxes', ENGLISH);
  assert.deepEqual(byToken(vector, ['quick', 'brown', 'fox']), { quick: 1.6742, brown: 1.6742, fox: 1.90142 });
});

test('k and b say what repetition and length are worth', () => {
  const text = 'one two two three three three';
  const tokens = ['one', 'two', 'three'];
  // b 0: the length does not count. f·2 / (f + 1).
  assert.deepEqual(byToken(bm25Document(text, { k: 1, b: 0, avgLen: 3 }), tokens), { one: 1, two: 1.33333, three: 1.5 });
  // k 0: a token is there or not.
  assert.deepEqual(byToken(bm25Document(text, { k: 0, b: 1, avgLen: 3 }), tokens), { one: 1, two: 1, three: 1 });
  // b 1: a text of twice the usual length. f·2 / (f + 2).
  assert.deepEqual(byToken(bm25Document(text, { k: 1, b: 1, avgLen: 3 }), tokens), { one: 0.66667, two: 1, three: 1.2 });
});

test('a query has each of its tokens once, with the weight 1', () => {
  const vector = bm25Query('foxes, foxes! And the brown fox', ENGLISH);
  assert.deepEqual(byToken(vector, ['brown', 'fox']), { brown: 1, fox: 1 });
  assert.deepEqual(
    [...vector.indices],
    [...vector.indices].sort((a, b) => a - b),
  );
});

test('tokenizer, lengths, folding and case are those of the options', () => {
  const tokens = (text: string, options: object) => [...bm25Query(text, { ...PLAIN, ...options }).indices];
  const indices = (...words: string[]) => words.map(tokenIndex).sort((a, b) => a - b);
  assert.deepEqual(tokens('Über-Größe', {}), indices('über', 'größe'));
  assert.deepEqual(tokens('Über-Größe', { ascii_folding: true }), indices('uber', 'grosse'));
  assert.deepEqual(tokens('Ab-c Ab', { tokenizer: 'whitespace', lowercase: false }), indices('Ab-c', 'Ab'));
  assert.deepEqual(tokens('a bc def ghij', { min_token_len: 2, max_token_len: 3 }), indices('bc', 'def'));
  assert.deepEqual(tokens('the foxes', {}), indices('the', 'foxes'));
});

test('texts without tokens have empty vectors', () => {
  for (const text of ['', ' .,;', 'the and of']) {
    assert.equal(bm25Document(text, ENGLISH).indices.length, 0);
    assert.equal(bm25Query(text, ENGLISH).indices.length, 0);
  }
});
