import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionEntry } from '../../../actors/context/view.js';
import type { Assignments } from '../../../actors/shard-log/assignments.js';
import { handOverShard } from '../../../actors/shard-log/hand-over.js';
import type { ReplicationInput } from '../../../cluster/replication/messages.js';
import { TroupeError } from '../../../protocols/errors.js';

const shard = { collection: 'c', uid: 7, shardId: 3 };
const CALL = { kind: 'handOver', shard, term: 5, to: 2 } as const;

/** A node of peer 1, whose shard has this leader; what was asked for, in order. */
function node(leader: number, pauses: TroupeError | null, agrees: TroupeError | boolean, held: number | null = 9) {
  const asked: string[] = [];
  const actor = {
    ask: async (make: (replyTo: number) => ReplicationInput) => {
      asked.push(make(1).kind);
      if (pauses !== null) throw pauses;
      return true;
    },
    report: ({ kind }: ReplicationInput) => void asked.push(kind),
  };
  const status = () => ({ role: 'Leading', position: 9, followers: [{ peer: 2, required: true, position: held }] });
  const entry = { replications: new Map([[3, { actor, status }]]) } as unknown as CollectionEntry;
  const assignments = { of: () => ({ leader, term: 5 }), peerId: 1 } as unknown as Assignments;
  const propose = async (operation: object) => {
    asked.push(JSON.stringify(operation));
    if (agrees instanceof TroupeError) throw agrees;
    return agrees;
  };
  return { asked, run: () => handOverShard({ assignments, propose }, entry, CALL) };
}

const PROPOSED = JSON.stringify({ kind: 'changeLeader', collection: 'c', uid: 7, shardId: 3, to: 2, term: 5 });

test('a leader pauses, and has the change of leaders agreed on', async () => {
  const { asked, run } = node(1, null, true);
  assert.deepEqual(await run(), { kind: 'done', changed: 1 });
  assert.deepEqual(asked, ['pause', 'pause', PROPOSED], 'the pause is fresh when it is proposed');
});

test('whoever does not lead in that term changes nothing', async () => {
  const { asked, run } = node(2, null, true);
  await assert.rejects(run(), { code: 'conflict' });
  assert.deepEqual(asked, []);
});

test('a leader that cannot stop, or whose heir is refused, leads on at once; one that does not know pauses on', async () => {
  const stuck = node(1, new TroupeError('timeout', 'writes wait'), true);
  await assert.rejects(stuck.run(), { code: 'timeout' });
  assert.deepEqual(stuck.asked, ['pause', 'resume']);
  const refused = node(1, null, new TroupeError('conflict', 'the heir is Dead'));
  await assert.rejects(refused.run(), { code: 'conflict' });
  assert.deepEqual(refused.asked, ['pause', 'pause', PROPOSED, 'resume']);
  const open = node(1, null, new TroupeError('timeout', 'no agreement in time'));
  await assert.rejects(open.run(), { code: 'timeout' });
  assert.deepEqual(open.asked, ['pause', 'pause', PROPOSED]);
});

test('a leader that alone has what is acknowledged leads on', async () => {
  for (const held of [8, null]) {
    const { asked, run } = node(1, null, true, held);
    await assert.rejects(run(), { code: 'conflict' });
    assert.deepEqual(asked, ['pause', 'pause', 'resume']);
  }
});
