import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import {
  checkCollectionName,
  checkNewCollectionName,
  collectionTimeout,
  flagParameter,
  readParameters,
  updateParameters,
} from '../../../protocols/rest/parameters.js';

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof TroupeError, String(error));
    return error.code;
  }
  return 'ok';
}

test('the timeout of reads and writes of points is a positive integer, everything else is malformed', () => {
  assert.deepEqual(readParameters({ timeout: '7' }), { consistency: undefined, timeoutSeconds: 7, explain: false });
  assert.deepEqual(readParameters({ consistency: '02' }), { consistency: 2, timeoutSeconds: undefined, explain: false });
  assert.equal(readParameters({ explain: 'true' }).explain, true);
  for (const timeout of ['0', '-1', 'abc', '', '1.5', '99999999999999999999', ['1', '2']]) {
    assert.equal(
      codeOf(() => readParameters({ timeout })),
      'malformedParameter',
      String(timeout),
    );
    assert.equal(
      codeOf(() => updateParameters({ timeout })),
      'malformedParameter',
      String(timeout),
    );
  }
});

test('a timeout of 0 is out of range where collections are changed', () => {
  assert.equal(collectionTimeout({ timeout: '30' }), 30);
  assert.equal(
    codeOf(() => collectionTimeout({ timeout: '0' })),
    'invalidParameter',
  );
  assert.equal(
    codeOf(() => collectionTimeout({ timeout: 'x' })),
    'malformedParameter',
  );
});

test('read consistency is a positive number, all, majority or quorum', () => {
  for (const consistency of ['1', '2', 'all', 'majority', 'quorum'])
    assert.equal(String(readParameters({ consistency }).consistency), consistency);
  for (const consistency of ['0', '-1', 'none', 'ALL']) {
    assert.equal(
      codeOf(() => readParameters({ consistency })),
      'malformedParameter',
      consistency,
    );
  }
  assert.throws(() => readParameters({ consistency: 'most' }), /'most': expected `majority`, `quorum`, `all` or a number/);
});

test('writes wait only when asked, in so many words', () => {
  assert.deepEqual(updateParameters({}), { wait: false, timeoutSeconds: undefined });
  assert.equal(updateParameters({ wait: 'true', ordering: 'strong' }).wait, true);
  assert.equal(flagParameter({ wait: 'false' }, 'wait'), false);
  for (const wait of ['yes', '1', '', 'True']) {
    assert.equal(
      codeOf(() => updateParameters({ wait })),
      'malformedParameter',
    );
  }
  assert.equal(
    codeOf(() => updateParameters({ ordering: 'loose' })),
    'malformedParameter',
  );
});

test('collection names have 1 to 255 characters, new ones none that file systems reserve', () => {
  for (const name of ['a', 'x'.repeat(255), '😀'.repeat(255), 'with space', 'tab\there', '..', 'ümläut']) {
    checkCollectionName(name);
    checkNewCollectionName(name);
  }
  for (const name of ['', 'x'.repeat(256), '😀'.repeat(256)]) {
    assert.equal(
      codeOf(() => checkCollectionName(name)),
      'invalidPath',
    );
  }
  for (const character of ['/', '\\', ':', '*', '?', '"', '<', '>', '|', '\0', '\u001f']) {
    checkCollectionName(`a${character}b`);
    assert.equal(
      codeOf(() => checkNewCollectionName(`a${character}b`)),
      'invalidPath',
      JSON.stringify(character),
    );
  }
});
