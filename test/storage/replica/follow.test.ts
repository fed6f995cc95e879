import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { type LogTag, NO_TAG, type ShardEntry } from '../../../protocols/model/shard-log.js';
import { type KnownLog, newEntries, nextTags } from '../../../storage/replica/follow.js';
import { behind, type LogTags, NO_TAGS, tagOf, withOperation } from '../../../storage/wal/log-tags.js';

/** `<term>.<index>`, of the peer whose id is ten times the term. */
function tag(text: string): LogTag {
  const [term, index] = text.split('.').map(Number) as [number, number];
  return index === 0 ? NO_TAG : { peer: term * 10, term, index };
}

function entries(...tags: string[]): ShardEntry[] {
  return tags.map((text) => ({ tag: tag(text), operation: new Uint8Array(0) }));
}

/** A log of operations behind the first, which it has lost. */
function log(...tags: string[]): KnownLog {
  const [base, ...kept] = tags.map(tag) as [LogTag, ...LogTag[]];
  return { base, last: kept.at(-1) ?? base, tagOf: (index) => kept.find((known) => known.index === index) ?? null };
}

/** What is new of the entries, or why they do not follow. */
function added(known: KnownLog, previous: string, ...tags: string[]): string {
  try {
    return newEntries(known, tag(previous), entries(...tags))
      .map(({ tag: { term, index } }) => `${term}.${index}`)
      .join(' ');
  } catch (error) {
    return (error as TroupeError).code;
  }
}

const CASES: readonly { log: string; previous: string; entries: string; added: string; why: string }[] = [
  { log: '0.0', previous: '0.0', entries: '1.5 1.6', added: '1.5 1.6', why: 'the first of an empty log' },
  { log: '0.0', previous: '1.4', entries: '1.5', added: 'conflict', why: 'something is missing before' },
  { log: '0.0 1.5', previous: '1.5', entries: '1.6 2.9', added: '1.6 2.9', why: 'the next, also of a later leader' },
  { log: '0.0 1.5 1.6', previous: '0.0', entries: '1.5 1.6 1.7', added: '1.7', why: 'what is there is passed over' },
  { log: '0.0 1.5 2.6', previous: '0.0', entries: '1.5 2.6', added: '', why: 'all is there' },
  { log: '0.0 1.5 1.6', previous: '0.0', entries: '1.5', added: '', why: 'an old message' },
  { log: '0.0 1.5 1.6', previous: '1.5', entries: '', added: '', why: 'a question whether it is there' },
  { log: '0.0 1.5 1.6', previous: '1.5', entries: '1.7', added: 'conflict', why: 'the log has one between' },
  { log: '0.0 1.5 1.6', previous: '1.5', entries: '2.8', added: 'conflict', why: 'the log has one that the leader lacks' },
  { log: '0.0 1.5', previous: '2.5', entries: '2.6', added: 'conflict', why: 'another operation of this index' },
  { log: '0.0 1.5 2.9', previous: '1.5', entries: '1.6 1.10', added: 'conflict', why: 'the leader is one of an earlier term' },
  { log: '0.0 2.9', previous: '2.9', entries: '1.10', added: 'conflict', why: 'a term that goes back' },
  { log: '0.0 1.5', previous: '1.5', entries: '1.7 1.6', added: 'conflict', why: 'indexes that go back' },
  { log: '1.5 1.6', previous: '1.3', entries: '1.4 1.5 1.6 1.7', added: '1.7', why: 'what lies before the base is not known any more' },
  { log: '1.5 1.6', previous: '2.5', entries: '2.6', added: 'conflict', why: 'the base is another one' },
  { log: '1.5', previous: '1.5', entries: '1.6', added: '1.6', why: 'a log that holds nothing goes on behind its base' },
  { log: '1.5', previous: '1.3', entries: '1.7', added: 'conflict', why: 'from before the base, and the base is not among them' },
];

for (const { added: expected, entries: sent, log: known, previous, why } of CASES) {
  test(`[${known}] takes ${expected || 'nothing'} of [${sent}] behind ${previous}: ${why}`, () => {
    const words = (text: string): string[] => text.split(' ').filter((word) => word !== '');
    assert.equal(added(log(...words(known)), previous, ...words(sent)), expected);
  });
}

test('a leader goes on behind what is there and behind what it is told, and one whose term is over does not', () => {
  const leader = { peer: 20, term: 2, indexAfter: 0 };
  assert.deepEqual(nextTags(tag('2.7'), leader, 2), [tag('2.8'), tag('2.9')]);
  assert.deepEqual(nextTags(tag('1.7'), { ...leader, indexAfter: 1000 }, 1), [tag('2.1001')]);
  for (const last of [{ ...tag('3.7') }, { ...tag('2.7'), peer: 30 }]) {
    assert.throws(
      () => nextTags(last, leader, 1),
      (error) => error instanceof TroupeError && error.code === 'conflict',
    );
  }
});

test('tags of a log are told by where each leader begins, and forgotten with its operations', () => {
  let tags: LogTags = NO_TAGS;
  for (const { term, peer, index } of ['0.1', '0.2', '1.10', '1.11', '4.20'].map(tag)) tags = withOperation(tags, { peer, term }, index);
  assert.deepEqual(
    [2, 10, 11, 25].map((index) => tagOf(tags, index)),
    [{ ...NO_TAG, index: 2 }, tag('1.10'), tag('1.11'), tag('4.25')],
  );
  assert.equal(tags.runs.length, 2);
  const later = behind(tags, tag('1.11'));
  assert.deepEqual(later, { base: tag('1.11'), runs: tags.runs, failed: 0, origin: null });
  assert.deepEqual(behind(later, tag('4.20')), { base: tag('4.20'), runs: [tag('4.20')], failed: 0, origin: null });
});

test('a node without a cluster goes on behind any log, and gives its operations no leader', () => {
  const alone = { peer: 0, term: 0, indexAfter: 0 };
  assert.deepEqual(nextTags(NO_TAG, alone, 1), [{ peer: 0, term: 0, index: 1 }]);
  assert.deepEqual(nextTags(tag('3.7'), alone, 1), [{ peer: 0, term: 0, index: 8 }]);
});
