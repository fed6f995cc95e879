import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { parseJson } from '../../../protocols/json.js';
import type { CollectionConfig, CollectionParams } from '../../../protocols/model/collection.js';
import { BUILT_IN_DEFAULTS, decodeCreateCollection } from '../../../protocols/rest/collections.js';
import { addVector, decodeNewVector, removeVector } from '../../../protocols/rest/vector-names.js';

const SINGLE = configOf({ vectors: { size: 2, distance: 'Dot' } });
const NAMED = configOf({ vectors: { a: { size: 2, distance: 'Dot' } }, sparse_vectors: { words: {} } });
const MORE = { size: 3, distance: 'Cosine' } as const;

function configOf(body: object): CollectionConfig {
  return decodeCreateCollection(parseJson(JSON.stringify(body)), BUILT_IN_DEFAULTS);
}

function vectorsOf({ params }: CollectionConfig): Pick<CollectionParams, 'vectors' | 'sparse_vectors'> {
  const { vectors, sparse_vectors } = params;
  return sparse_vectors === undefined ? { vectors } : { vectors, sparse_vectors };
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof TroupeError) return error.code;
    throw error;
  }
  return 'done';
}

test('a collection gets vectors of every kind', () => {
  const dense = addVector(NAMED, decodeNewVector('b', { dense: MORE }));
  const multi = addVector(dense, decodeNewVector('m', { dense: { ...MORE, multivector_config: { comparator: 'max_sim' } } }));
  const sparse = addVector(multi, decodeNewVector('more words', { sparse: { modifier: 'idf', datatype: 'float16' } }));
  assert.deepEqual(vectorsOf(sparse), {
    vectors: { a: { size: 2, distance: 'Dot' }, b: MORE, m: { ...MORE, multivector_config: { comparator: 'max_sim' } } },
    sparse_vectors: { words: {}, 'more words': { index: { datatype: 'float16' }, modifier: 'idf' } },
  });
});

test('the vector of a collection with one is called nothing beside others, and stays so', () => {
  const both = addVector(SINGLE, decodeNewVector('b', { dense: MORE }));
  assert.deepEqual(vectorsOf(both), { vectors: { '': { size: 2, distance: 'Dot' }, b: MORE } });
  assert.deepEqual(vectorsOf(removeVector(both, 'b')), { vectors: { '': { size: 2, distance: 'Dot' } } });
  const words = addVector(SINGLE, decodeNewVector('words', { sparse: {} }));
  assert.deepEqual(vectorsOf(words), { ...vectorsOf(SINGLE), sparse_vectors: { words: {} } });
  assert.deepEqual(vectorsOf(removeVector(words, 'words')), vectorsOf(SINGLE));
});

test('what is there already is left alone, and another one of the name is refused', () => {
  assert.equal(addVector(NAMED, decodeNewVector('a', { dense: { size: 2, distance: 'Dot' } })), NAMED);
  assert.equal(addVector(NAMED, decodeNewVector('words', { sparse: {} })), NAMED);
  for (const [name, body] of [
    ['a', { dense: MORE }],
    ['a', { sparse: {} }],
    ['words', { dense: MORE }],
    ['words', { sparse: { modifier: 'idf' } }],
  ] as const)
    assert.equal(
      codeOf(() => addVector(NAMED, decodeNewVector(name, body))),
      'wrongInput',
    );
});

test('a vector that is not there is removed without ado', () => {
  assert.equal(removeVector(NAMED, 'b'), NAMED);
  assert.deepEqual(vectorsOf(removeVector(removeVector(NAMED, 'a'), 'words')), { vectors: {} });
});

test('what makes no vector is refused', () => {
  for (const [body, code] of [
    [{}, 'malformedBody'],
    [{ dense: { size: 2 } }, 'malformedBody'],
    [{ dense: { size: 2, distance: 'X' } }, 'malformedBody'],
    [{ dense: { size: 0, distance: 'Dot' } }, 'invalidValue'],
    [{ sparse: { modifier: 'bm25' } }, 'malformedBody'],
  ] as const)
    assert.equal(
      codeOf(() => decodeNewVector('z', body)),
      code,
      JSON.stringify(body),
    );
  assert.equal(
    codeOf(() => decodeNewVector('a/b', { sparse: {} })),
    'wrongInput',
  );
});

test('a vector may be called as what objects inherit', () => {
  const config = addVector(NAMED, decodeNewVector('__proto__', { dense: MORE }));
  assert.deepEqual(Object.keys(config.params.vectors), ['a', '__proto__']);
  assert.equal(removeVector(config, 'constructor'), config);
});
