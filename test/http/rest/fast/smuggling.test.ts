/**
 * Requests that two readers of a connection could take for different ones: each is refused, or taken in one way by the plain path, a reader's
 * and Fastify. What an attacker hides in one is never carried out.
 */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Harness, type HarnessOptions, openDoor, sendRaw } from '../fake-node.js';

const WAYS: Readonly<Record<string, HarnessOptions>> = {
  'the plain path': {},
  'the plain path of a reader': { readAlone: () => null },
  Fastify: { fastPath: false },
};

const HIDDEN = 'POST /collections/c/points/delete HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}';
const LAST = 'GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
const CHUNKED_HIDDEN = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;

function count(fields: readonly string[], body = '', method = 'POST', target = '/collections/c/points/count'): string {
  return [`${method} ${target} HTTP/1.1`, 'host: x', ...fields, '', body].join('\r\n');
}

interface Attack {
  readonly bytes: string;
  /** Statuses of the answers, in order; 400 ends the connection. */
  readonly statuses: readonly number[];
}

const ATTACKS: Readonly<Record<string, Attack>> = {
  'two lengths': { bytes: count(['content-length: 2', `content-length: ${HIDDEN.length}`], HIDDEN), statuses: [400] },
  'the same length twice': { bytes: count(['content-length: 2', 'content-length: 2'], `{}${HIDDEN}`), statuses: [400] },
  'a list of lengths': { bytes: count(['content-length: 2, 2'], `{}${HIDDEN}`), statuses: [400] },
  'a length with a sign': { bytes: count(['content-length: +2'], `{}${HIDDEN}`), statuses: [400] },
  'a negative length': { bytes: count(['content-length: -2'], `{}${HIDDEN}`), statuses: [400] },
  'a hexadecimal length': { bytes: count(['content-length: 0x2'], `{}${HIDDEN}`), statuses: [400] },
  'a length with a space within': { bytes: count(['content-length: 2 2'], `{}${HIDDEN}`), statuses: [400] },
  'a length beyond all numbers': { bytes: count(['content-length: 184467440737095516162'], `{}${HIDDEN}`), statuses: [400] },
  'an empty length': { bytes: count(['content-length:'], `{}${HIDDEN}`), statuses: [400] },
  'a length and chunks': { bytes: count(['content-length: 5', 'transfer-encoding: chunked'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'chunks and a length': { bytes: count(['transfer-encoding: chunked', 'content-length: 5'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'a coding that is no chunks': { bytes: count(['transfer-encoding: xchunked'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'chunks that are not the last coding': { bytes: count(['transfer-encoding: chunked, identity'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'chunks before a space and the colon': { bytes: count(['transfer-encoding : chunked'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'chunks in a folded line': { bytes: count(['x: y', ' transfer-encoding: chunked'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'chunks behind a bare line feed': { bytes: count(['x: y\ntransfer-encoding: chunked'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'chunks behind a bare carriage return': { bytes: count(['x: y\rtransfer-encoding: chunked'], `0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'a head of bare line feeds': { bytes: count(['content-length: 2'], `{}${HIDDEN}`).replaceAll('\r\n', '\n'), statuses: [400] },
  'a null byte in a field': { bytes: count(['x: a\0b', 'content-length: 2'], `{}${HIDDEN}`), statuses: [400] },
  'a null byte in the path': { bytes: count(['content-length: 2'], `{}${HIDDEN}`, 'POST', '/collections/c\0/points'), statuses: [400] },
  'a space in the path': { bytes: count(['content-length: 2'], `{}${HIDDEN}`, 'POST', '/collections/c d'), statuses: [400] },
  'a chunk with a sign': { bytes: count(['transfer-encoding: chunked'], `+2\r\n{}\r\n0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'a chunk with a prefix': { bytes: count(['transfer-encoding: chunked'], `0x2\r\n{}\r\n0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'a chunk longer than it says': { bytes: count(['transfer-encoding: chunked'], `2\r\n{}{}\r\n0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'a chunk of more than can be': { bytes: count(['transfer-encoding: chunked'], `fffffffffffffffff\r\n${HIDDEN}`), statuses: [400] },
  'an extension with a bare line feed': { bytes: count(['transfer-encoding: chunked'], `2;x\n{}\r\n0\r\n\r\n${HIDDEN}`), statuses: [400] },
  'two hosts': { bytes: count(['host: y', 'content-length: 2'], `{}${HIDDEN}`), statuses: [400] },
  'fields without end': { bytes: count([...Array(300).fill('x: y'), 'content-length: 2'], `{}${HIDDEN}`), statuses: [431] },
  'a head without end': { bytes: count([`x: ${'y'.repeat(20_000)}`, 'content-length: 2'], `{}${HIDDEN}`), statuses: [431] },
  'no host': { bytes: count(['content-length: 2'], `{}${HIDDEN}`).replace('host: x\r\n', ''), statuses: [400] },
  'the preface of HTTP/2': { bytes: `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`, statuses: [400] },
  'a version of its own': { bytes: count(['content-length: 0'], HIDDEN).replace('HTTP/1.1', 'HTTP/1.2'), statuses: [400] },
  'a request within a body': { bytes: count([`content-length: ${HIDDEN.length}`], HIDDEN) + LAST, statuses: [200, 200] },
  'a request within a chunk': { bytes: count(['transfer-encoding: chunked'], CHUNKED_HIDDEN) + LAST, statuses: [200, 200] },
  'a request within the body of a GET': {
    bytes: count([`content-length: ${HIDDEN.length}`], HIDDEN, 'GET', '/livez') + LAST,
    statuses: [200, 200],
  },
  'a request within the body of a DELETE': {
    bytes: count([`content-length: ${HIDDEN.length}`], HIDDEN, 'DELETE', '/collections/none') + LAST,
    statuses: [200, 200],
  },
  'a request within the body of an unknown path': {
    bytes: count([`content-length: ${HIDDEN.length}`], HIDDEN, 'POST', '/none') + LAST,
    statuses: [404, 200],
  },
  'a request within a body that is refused for its parameter': {
    bytes: count([`content-length: ${HIDDEN.length}`], HIDDEN, 'POST', '/collections/c/points/count?timeout=0') + LAST,
    statuses: [400, 200],
  },
  'a request within a body that is packed in an unknown way': {
    bytes: count([`content-length: ${HIDDEN.length}`, 'content-encoding: x'], HIDDEN) + LAST,
    statuses: [415, 200],
  },
  'a request within a body that is not packed as it says': {
    bytes: count([`content-length: ${HIDDEN.length}`, 'content-encoding: gzip'], HIDDEN) + LAST,
    statuses: [400, 200],
  },
  'the path of another host': { bytes: count(['connection: close'], '', 'GET', 'http://y/livez'), statuses: [200] },
  'another protocol': {
    bytes: count(['connection: upgrade, close', 'upgrade: h2c', `content-length: ${HIDDEN.length}`], HIDDEN),
    statuses: [200],
  },
  'a length that is to be taken away': {
    bytes: count([`content-length: ${HIDDEN.length}`, 'connection: keep-alive, content-length'], HIDDEN) + LAST,
    statuses: [200, 200],
  },
  'fields that look like a length': {
    bytes: count(['content_length: 2', 'content-length2: 2', 'content-length: 0']) + LAST,
    statuses: [200, 200],
  },
  'a length behind the chunks': {
    bytes: count(['transfer-encoding: chunked'], `2\r\n{}\r\n0\r\ncontent-length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`),
    statuses: [400],
  },
};

for (const [way, options] of Object.entries(WAYS)) {
  test(`${way} carries out nothing that is hidden in another request`, { timeout: 60_000 }, async (t) => {
    const harness = await openCollection(t, options);
    for (const [what, { bytes, statuses }] of Object.entries(ATTACKS)) {
      for (const before of ['', count(['content-length: 2'], '{}')]) {
        harness.node.asked.length = 0;
        const text = await sendRaw(harness.door.port, before + bytes);
        const answered = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
        // At broken bytes Node's server may give up the answer that it has not sent yet.
        if (before !== '' && answered.length > statuses.length) assert.equal(answered.shift(), 200, what);
        assert.deepEqual(answered, statuses, `${what}:\n${text}`);
        const hidden = harness.node.asked.filter(({ operation }) => operation !== 'count');
        assert.deepEqual(hidden, [], `${what} is carried out`);
      }
    }
    assert.deepEqual(harness.errors, []);
  });
}

async function openCollection(t: TestContext, options: HarnessOptions): Promise<Harness> {
  const harness = await openDoor(options);
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', { params: {} } as never);
  return harness;
}
