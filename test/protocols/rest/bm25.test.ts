import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TroupeError } from '../../../protocols/errors.js';
import { decodeBm25Options, isBm25 } from '../../../protocols/rest/bm25.js';
import type { JsonObject } from '../../../protocols/rest/fields.js';
import { inferenceInput } from '../../../protocols/rest/query-input.js';

const decode = (options: JsonObject) => decodeBm25Options(options, 'options');

function refuses(options: JsonObject, code: TroupeError['code'], message: RegExp): void {
  assert.throws(
    () => decode(options),
    (error: TroupeError) => error.code === code && message.test(error.message),
    JSON.stringify(options),
  );
}

test('the model goes by two names, in small and capital letters', () => {
  assert.deepEqual(['bm25', 'qdrant/bm25', 'Qdrant/BM25', 'bm', 'other/bm25', 'bm25 '].map(isBm25), [
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('English is the default, with its stop words and its stemmer', () => {
  const english = { stopwords: 'english', stemmer: { type: 'snowball', language: 'english' } };
  assert.deepEqual(decode({}), { ...english, k: 1.2, b: 0.75, avgLen: 256 });
  assert.deepEqual(decode({ language: null, stopwords: null, k: null }), { ...english, k: 1.2, b: 0.75, avgLen: 256 });
  assert.deepEqual(decode({ k: 2, b: 1, avg_len: 10, tokenizer: 'prefix', lowercase: false, min_token_len: 2 }), {
    ...english,
    k: 2,
    b: 1,
    avgLen: 10,
    tokenizer: 'prefix',
    lowercase: false,
    min_token_len: 2,
  });
});

test('a language brings what there is for it, and what is given beside it wins', () => {
  const words = (options: JsonObject) => {
    const { stopwords, stemmer } = decode(options);
    return [stopwords, stemmer?.language];
  };
  assert.deepEqual(words({ language: 'german' }), ['german', 'german']);
  assert.deepEqual(words({ language: 'hebrew' }), ['hebrew', undefined]);
  assert.deepEqual(words({ language: 'tamil' }), [null, 'tamil']);
  assert.deepEqual(words({ language: 'none' }), [undefined, undefined]);
  assert.deepEqual(words({ language: 'german', stopwords: { custom: ['ja'] } }), [{ custom: ['ja'] }, 'german']);
  assert.deepEqual(words({ language: 'none', stemmer: { type: 'snowball', language: 'dutch' } }), [undefined, 'dutch']);
});

test('options of a wrong type and words that are not known are refused, with those that are', () => {
  refuses({ language: 'klingon' }, 'malformedBody', /`options\.language`.*german.*tamil.*none/);
  refuses({ language: 7 }, 'malformedBody', /language/);
  refuses({ tokenizer: 'words' }, 'malformedBody', /`word`/);
  refuses({ stopwords: 'klingon' }, 'malformedBody', /german/);
  refuses({ stemmer: { type: 'snowball' } }, 'malformedBody', /stemmer\.language/);
  refuses({ k: '1' }, 'malformedBody', /`options\.k`.*number/);
  refuses({ lowercase: 1 }, 'malformedBody', /boolean/);
  refuses({ min_token_len: -1 }, 'malformedBody', /unsigned/);
});

test('numbers that would make no finite vector are refused', () => {
  refuses({ k: -0.1 }, 'invalidValue', /options\.k/);
  refuses({ k: 1e300 }, 'invalidValue', /options\.k/);
  refuses({ b: 1.01 }, 'invalidValue', /options\.b/);
  refuses({ avg_len: 0 }, 'invalidValue', /options\.avg_len/);
});

test('a text is for BM25 only by its model', () => {
  const input = (object: JsonObject) => inferenceInput(object, 'query');
  assert.equal(input({ text: 'a', model: 'BM25' }).kind, 'bm25');
  assert.equal(input({ text: 'a', model: 'some/model', options: { k: 'whatever' } }).kind, 'document');
  assert.equal(input({ image: 'a', model: 'bm25' }).kind, 'image');
  assert.throws(() => input({ text: 'a', model: 'bm25', options: { k: 'whatever' } }), /`query\.options\.k`/);
  assert.throws(() => input({ text: 'a', model: 'bm25', options: 3 }), { code: 'malformedBody' });
});
