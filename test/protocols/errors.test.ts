import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorFacts, TroupeError } from '../../protocols/errors.js';

test('a message quotes the beginning and the end of what is long, and no half of a character', () => {
  const { detail, message } = new TroupeError('wrongInput', `key ${'x'.repeat(1_000_000)}: is wrong`);
  assert.ok(detail.length < 900 && message.endsWith(': is wrong') && detail.startsWith('key xxx'), `${detail.length}`);
  assert.equal(new TroupeError('wrongInput', 'short').detail, 'short');
  for (const start of ['', 'a', 'ab']) {
    const cut = errorFacts(new Error(start + '\u{1f600}'.repeat(5000) + start)).detail;
    // Throws for half a surrogate pair, as gRPC's encoding of messages does.
    assert.ok(encodeURI(cut).length < 8000);
  }
});

test('half a character is quoted in one way, whether it came as it was or through bytes', () => {
  const quoted = (key: string): string => new TroupeError('wrongInput', `no index for \`${key}\``).detail;
  const sent = '\ud800';
  const arrived = Buffer.from([0xed, 0xa0, 0x80]).toString('utf8');
  assert.equal(quoted(sent), 'no index for `\ufffd`');
  assert.equal(quoted(arrived), quoted(sent));
  assert.equal(errorFacts(new Error(sent)).detail, '\ufffd');
  assert.equal(quoted('\u{1f600}ü'), 'no index for `\u{1f600}ü`');
});
