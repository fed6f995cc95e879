import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionError } from '../../../protocols/http2/frames.js';
import { HpackDecoder, TOO_LARGE } from '../../../protocols/http2/hpack-decoder.js';

/** RFC 7541, appendix C.4: three requests with Huffman code, on one connection. */
const RFC_BLOCKS: readonly (readonly [hex: string, fields: readonly string[]])[] = [
  ['828684418cf1e3c2e5f23a6ba0ab90f4ff', [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com']],
  [
    '828684be5886a8eb10649cbf',
    [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com', 'cache-control', 'no-cache'],
  ],
  [
    '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
    [':method', 'GET', ':scheme', 'https', ':path', '/index.html', ':authority', 'www.example.com', 'custom-key', 'custom-value'],
  ],
];

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

test('the examples of the RFC are read', () => {
  const decoder = new HpackDecoder(4096);
  for (const [hex, fields] of RFC_BLOCKS) assert.deepEqual(decoder.decode(bytes(hex)), fields);
});

test('a block that comes again gives the same list, unless the table has changed in between', () => {
  const decoder = new HpackDecoder(4096);
  decoder.decode(bytes('4003 616161 0131'));
  const fields = decoder.decode(bytes('be'));
  assert.deepEqual(fields, ['aaa', '1']);
  assert.equal(decoder.decode(bytes('be')), fields);
  decoder.decode(bytes('4003 626262 0132'));
  assert.deepEqual(decoder.decode(bytes('be')), ['bbb', '2']);
  assert.deepEqual(decoder.decode(bytes('bf')), ['aaa', '1']);
});

test('the oldest fields leave a full table, and all of them one that becomes empty', () => {
  const decoder = new HpackDecoder(1 << 20);
  const value = 'v'.repeat(1900);
  for (const name of ['aaa', 'bbb', 'ccc']) decoder.decode(literal(name, value));
  assert.deepEqual(decoder.decode(bytes('be bf')), ['ccc', value, 'bbb', value]);
  assert.throws(() => decoder.decode(bytes('c0')), ConnectionError);
  assert.deepEqual(decoder.decode(bytes('20 82')), [':method', 'GET']);
  assert.throws(() => decoder.decode(bytes('be')), ConnectionError);
});

test('a field that is larger than the table empties it', () => {
  const decoder = new HpackDecoder(1 << 20);
  decoder.decode(literal('aaa', '1'));
  decoder.decode(literal('bbb', 'v'.repeat(5000)));
  assert.throws(() => decoder.decode(bytes('be')), ConnectionError);
});

test('fields above the limit are dropped, and later blocks are read', () => {
  const decoder = new HpackDecoder(100);
  assert.equal(decoder.decode(literal('aaa', 'v'.repeat(200))), TOO_LARGE);
  assert.equal(decoder.decode(bytes('be')), TOO_LARGE);
  assert.deepEqual(decoder.decode(bytes('82')), [':method', 'GET']);
});

test('a damaged block is an error of the connection', () => {
  const damaged = {
    'index 0': '80',
    'an index beyond the tables': 'be',
    'a name beyond the tables': '7e 0131',
    'a text that ends early': '00 03 6161',
    'a number that ends early': 'ff',
    'a number without an end': 'ff 80 80 80 80 80 80 80 80',
    'a number that is too large': 'ff ff ff ff ff 7f',
    'a table that is larger than allowed': '3f e2 1f',
    'a table that changes its size after a field': '82 20',
    'padding of zeros': '00 81 00 0131',
    'padding of more than 7 bits': '00 82 1f ff 0131',
    'the end of a string in a text': '00 84 ff ff ff ff 0131',
    'nothing where a text should be': '00',
  };
  for (const [what, hex] of Object.entries(damaged)) {
    assert.throws(() => new HpackDecoder(4096).decode(bytes(hex)), ConnectionError, what);
  }
});

/** A field that enters the table. */
function literal(name: string, value: string): Buffer {
  const { length } = value;
  const size = length < 127 ? [length] : [127, 0x80 | ((length - 127) & 127), (length - 127) >> 7];
  return Buffer.concat([Buffer.from([0x40, name.length]), Buffer.from(name), Buffer.from(size), Buffer.from(value)]);
}
