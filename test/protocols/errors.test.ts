import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ERROR_KINDS,
  ERROR_REASONS,
  type ErrorCode,
  type ErrorReason,
  errorFacts,
  errorFromFacts,
  factsForPeer,
  factsFromPeer,
  outcomeOf,
  TroupeError,
} from '../../protocols/errors.js';

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

const CODES = Object.keys(ERROR_KINDS) as ErrorCode[];
const REASONS = Object.keys(ERROR_REASONS) as ErrorReason[];

test('without more said, what can follow after something was logged leaves it open, and a refusal does not', () => {
  const open = CODES.filter((code) => new TroupeError(code, 'why').outcome === 'unknown');
  assert.deepEqual(open, ['timeout', 'storage', 'internal']);
  const unknown = REASONS.filter((reason) => new TroupeError('unavailable', 'why', { reason }).outcome === 'unknown');
  assert.deepEqual(unknown, ['damaged', 'answerLost', 'actorCrashed']);
  assert.equal(errorFacts(new Error('a bug')).code, 'internal');
  assert.equal(outcomeOf(errorFacts(new Error('a bug'))), 'unknown');
});

test('an error comes back from its facts as it was, on this node and from another one', () => {
  for (const code of CODES)
    for (const reason of [undefined, ...REASONS])
      for (const outcome of [undefined, 'none', 'unknown'] as const) {
        const error = new TroupeError(code, 'why', { reason, outcome, retryAfterMs: 20 });
        const { name: _, ...thrown } = error;
        const { name: __, ...here } = errorFromFacts(errorFacts(error));
        assert.deepEqual(here, thrown);
        const there = errorFromFacts(factsFromPeer(factsForPeer(errorFacts(error))));
        assert.deepEqual([there.code, there.detail, there.retryAfterMs, there.outcome], [code, 'why', 20, error.outcome]);
        // That a peer has not reached another one says nothing of the way to the peer itself.
        assert.equal(there.reason, reason === 'notReached' || reason === 'answerLost' ? undefined : reason);
      }
});

test('facts for another node always say the outcome, as its release may have other defaults', () => {
  assert.deepEqual(factsForPeer({ code: 'timeout', detail: 'late' }), { code: 'timeout', detail: 'late', outcome: 'unknown' });
  assert.deepEqual(factsForPeer({ code: 'notFound', detail: 'gone' }), { code: 'notFound', detail: 'gone', outcome: 'none' });
});

test('what a later release says keeps its code and its text, and leaves open what cannot be read', () => {
  const facts = { code: 'conflict', detail: 'why', retryAfterMs: 5, reason: 'ofLater', outcome: 'ofLater' };
  assert.deepEqual(factsFromPeer(facts), { code: 'conflict', detail: 'why', retryAfterMs: 5, outcome: 'unknown' });
  assert.deepEqual(factsFromPeer({ ...facts, code: 'ofLater', outcome: 'none' }), {
    code: 'internal',
    detail: 'why',
    retryAfterMs: 5,
    outcome: 'none',
  });
  assert.deepEqual(factsFromPeer({}), { code: 'internal', detail: '', outcome: 'unknown' });
});
