import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TracedWrites } from '../../../actors/shard-log/traced-writes.js';
import type { ShardEntry } from '../../../protocols/model/shard-log.js';
import type { HopNotes } from '../../../protocols/model/write-hop.js';

function entries(first: number, last: number): ShardEntry[] {
  return Array.from({ length: last - first + 1 }, (_, at) => ({
    tag: { peer: 1, term: 1, index: first + at },
    operation: new Uint8Array(0),
  }));
}

test('what goes to a replica is noted for the traced writes whose operations are in it, until they are answered', () => {
  const traced = new TracedWrites();
  const notes: readonly [HopNotes, HopNotes] = [[], []];
  traced.logged(1, notes[0], entries(5, 6));
  traced.logged(2, undefined, entries(7, 7));
  traced.logged(3, notes[1], entries(8, 8));
  traced.sent(11, entries(6, 7))();
  const late = traced.sent(12, entries(8, 9));
  traced.ended(3);
  traced.sent(13, entries(8, 9))();
  late();
  const seen = notes.map((hops) => hops.map(({ facts, name }) => [name, facts['troupe.peer_id']]));
  assert.deepEqual(seen, [[['replica 11', '11']], [['replica 12', '12']]]);
});
