import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { scanVectors } from '../../../protocols/rest/vector-scan.js';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

test('a vector is taken out of a query and a place left in the text', () => {
  const scanned = scanVectors(
    bytesOf('{ "limit": 3, "query" : [1, -2.5 ,3e2], "filter": {"must": [{"key": "a[]", "match": {"value": "[1,2]"}}]} }'),
  );
  assert.ok(scanned);
  assert.deepEqual([...(scanned.vectors[0] as Float32Array)], [1, -2.5, 300]);
  assert.deepEqual(JSON.parse(scanned.text), { limit: 3, query: [0], filter: { must: [{ key: 'a[]', match: { value: '[1,2]' } }] } });
});

test('vectors are found at every place the API has them', () => {
  const places = [
    '{"query":[1]}',
    '{"query":{"nearest":[1]}}',
    '{"vector":[1]}',
    '{"vector":{"name":"a","vector":[1]}}',
    '{"searches":[{"query":[1]},{"query":7}]}',
    '{"prefetch":{"prefetch":[{"query":{"nearest":[1]}}]},"query":2}',
    '{"query":{"recommend":{"positive":[1,[1]],"negative":[2]}}}',
    '{"query":{"discover":{"target":[1],"context":{"positive":1,"negative":2}}}}',
    '{"query":{"context":[{"positive":1,"negative":[1]}]}}',
    '{"query":{"relevance_feedback":{"target":1,"feedback":[{"example":[1],"score":1}]}}}',
    '{"positive":[1,2],"negative":[[1]]}',
    '{"target":7,"context":[{"positive":[1],"negative":2}]}',
  ];
  for (const text of places) assert.equal(scanVectors(bytesOf(text))?.vectors.length, 1, text);
});

test('vectors of a batch come in their order', () => {
  const scanned = scanVectors(
    bytesOf('{"searches":[{"vector":[1],"limit":1},{"limit":2,"vector":{"name":"b","vector":[2,3]}}, {"vector":[]}]}'),
  );
  assert.deepEqual(
    scanned?.vectors.map((vector) => [...vector]),
    [[1], [2, 3]],
  );
  assert.deepEqual(JSON.parse(scanned?.text ?? ''), {
    searches: [{ vector: [0], limit: 1 }, { limit: 2, vector: { name: 'b', vector: [1] } }, { vector: [] }],
  });
});

test('the vectors of a multivector are taken one by one', () => {
  const scanned = scanVectors(bytesOf('{"query":[[1,2], [3]],"prefetch":[{"query":[ [4] ]}]}'));
  assert.deepEqual(
    scanned?.vectors.map((vector) => [...vector]),
    [[1, 2], [3], [4]],
  );
  assert.deepEqual(JSON.parse(scanned?.text ?? ''), { query: [[0], [1]], prefetch: [{ query: [[2]] }] });
});

test('a body whose prefetches go down forever is left to the parser', () => {
  const depth = 100_000;
  assert.equal(scanVectors(bytesOf(`${'{"prefetch":'.repeat(depth)}{"query":[1]}${'}'.repeat(depth)}`)), null);
});

test('number arrays elsewhere are left alone', () => {
  const formula = '{"prefetch":{"query":3},"query":{"formula":{"mult":[1,2]}}}';
  for (const text of [
    formula,
    '{"query":{"rrf":{"weights":[1,2]}}}',
    '{"ids":[1,2]}',
    '{"filter":{"query":[1]}}',
    '{"query":{"indices":[1],"values":[2]}}',
    '{"query":3}',
  ]) {
    assert.equal(scanVectors(bytesOf(text)), null, text);
  }
});

test('whatever is no plain list of JSON numbers is left to the parser', () => {
  const lists = [
    '[[[1]]]',
    '[[1],2]',
    '["1"]',
    '[1,]',
    '[,1]',
    '[01]',
    '[1.]',
    '[.5]',
    '[+1]',
    '[1e]',
    '[-]',
    '[NaN]',
    '[1 2]',
    '[1',
    '[null]',
    '[1e400]',
    '[0x1]',
    '[1.e5]',
  ];
  for (const list of lists) assert.equal(scanVectors(bytesOf(`{"query":${list}}`)), null, list);
});

test('broken bodies are left to the parser', () => {
  for (const text of ['', '[]', 'null', '{', '{"query":[1]', '{query:[1]}', '{"query" [1]}', '{"query":[1] "a":1}', '{"a":"x']) {
    assert.equal(scanVectors(bytesOf(text)), null, text);
  }
  assert.equal(scanVectors(Uint8Array.of(...bytesOf('{"a":"'), 0xff, ...bytesOf('","query":[1]}'))), null, 'no UTF-8');
});

test('a quote behind a backslash does not end a string', () => {
  const scanned = scanVectors(bytesOf('{"a":"x\\"],[\\\\","query":[4],"ü":"é"}'));
  assert.deepEqual(JSON.parse(scanned?.text ?? ''), { a: 'x"],[\\', query: [0], ü: 'é' });
});

test('every number is read as the float32 that JSON.parse and rounding give', () => {
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.tuple(fc.integer(), fc.stringMatching(/^[0-9]{1,25}$/)).map(([whole, fraction]) => `${whole}.${fraction}`),
    fc.double({ min: -1, max: 1, noNaN: true }).map((value) => value.toFixed(17)),
    fc.integer().map(String),
  );
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 50 }), (numbers) => {
      const text = `[${numbers.join(',')}]`;
      const scanned = scanVectors(bytesOf(`{"query":${text}}`));
      const expected = Float32Array.from(JSON.parse(text) as number[]);
      assert.deepEqual(scanned?.vectors[0], expected);
    }),
    { numRuns: 500 },
  );
});

test('numbers halfway between two float32 values round as JSON.parse and rounding do', () => {
  const halfway = [];
  for (let i = 0; i < 200; i++) {
    const low = Math.fround(0.5 + i / 777);
    const high = low + 2 ** -24;
    halfway.push(...[(low + high) / 2, (low + high) / 2 + 2 ** -53, (low + high) / 2 - 2 ** -53].map((value) => value.toFixed(19)));
  }
  const text = `[${halfway.join(',')}]`;
  assert.deepEqual(scanVectors(bytesOf(`{"query":${text}}`))?.vectors[0], Float32Array.from(JSON.parse(text) as number[]));
});
