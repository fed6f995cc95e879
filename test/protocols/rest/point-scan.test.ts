import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanPoints } from '../../../protocols/rest/point-scan.js';

const scan = (text: string, listed = false) => scanPoints(new TextEncoder().encode(text), listed);

test('vectors of points are taken out at every place the API has them', () => {
  const bodies: [string, string][] = [
    ['{"points":[{"id":1,"vector":[1,2]},{"vector":[3],"id":2}]}', '{"points":[{"id":1,"vector":[0]},{"vector":[1],"id":2}]}'],
    ['{"points": [ {"vector" : {"a": [1, 2], "b":[3]}} ]}', '{"points": [ {"vector" : {"a": [0], "b":[1]}} ]}'],
    ['{"batch":{"ids":[1,2],"vectors":[[1],[2]]}}', '{"batch":{"ids":[1,2],"vectors":[[0],[1]]}}'],
    ['{"batch":{"vectors":[{"a":[1]},[2]]}}', '{"batch":{"vectors":[{"a":[0]},[1]]}}'],
    ['{"batch":{"vectors":{"a":[[1],[2]]}}}', '{"batch":{"vectors":{"a":[[0],[1]]}}}'],
  ];
  for (const [body, text] of bodies) {
    const scanned = scan(body);
    assert.equal(scanned?.text, text);
    assert.equal(scanned?.characters, body.length);
  }
});

test('operations of a batch are looked into when they carry points', () => {
  const scanned = scan('{"operations":[{"upsert":{"points":[{"vector":[7,8]}]}},{"delete_vectors":{"points":[1],"vector":["a"]}}]}', true);
  assert.equal(scanned?.text, '{"operations":[{"upsert":{"points":[{"vector":[0]}]}},{"delete_vectors":{"points":[1],"vector":["a"]}}]}');
  assert.deepEqual(scanned?.vectors, [Float32Array.of(7, 8)]);
});

test('payloads and everything beside points stay as they are', () => {
  const scanned = scan('{"x":{"vector":[1]},"points":[{"payload":{"vector":[1],"\\"":"]}"},"vector":[5]}],"ü":"é"}');
  assert.equal(scanned?.text, '{"x":{"vector":[1]},"points":[{"payload":{"vector":[1],"\\"":"]}"},"vector":[0]}],"ü":"é"}');
});

test('multivectors are taken out vector by vector; sparse vectors and texts stay as they are', () => {
  const rest = (vector: string) => scan(`{"points":[{"vector":[9]},{"vector":${vector}}]}`)?.text.slice(36, -3);
  assert.equal(rest('[[1,2],[3,4]]'), '[[1],[2]]');
  assert.equal(rest('{"a":[[1,2]],"b":{"indices":[1],"values":[2]}}'), '{"a":[[1]],"b":{"indices":[1],"values":[2]}}');
  assert.equal(rest('{"a":{"text":"[1]","model":"m"}}'), '{"a":{"text":"[1]","model":"m"}}');
});

test('a body with anything else for a vector is left to the parser', () => {
  const vectors = ['[]', 'null', '7', '"a"', '[[]]', '[[[1]]]', '{"a":[]}', '[1,"a"]', '[1e300]', '[1234567890123456]'];
  for (const vector of vectors) assert.equal(scan(`{"points":[{"vector":[1]},{"vector":${vector}}]}`), null, vector);
  for (const body of ['', '[]', '{}', '{"points":7}', '{"points":[1]}', '{"points":[]}', '{"points":[{"vector":[1]', '{"p\\u006fints":[]}'])
    assert.equal(scan(body), null, body);
});
