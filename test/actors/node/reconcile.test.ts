import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Belonging, Desired } from '../../../actors/context/desired.js';
import { type Finding, reconcile, type There, type Wanted, wantedByFolder } from '../../../actors/node/reconcile.js';
import type { CollectionPhase } from '../../../actors/node/state.js';
import { sampleConfig } from '../samples.js';

const CONFIG = sampleConfig();
const DESIRED: Desired = { index: 50, clusterId: 'ours', peerId: 7, collections: new Map(), aliases: new Map() };
const MET: Belonging = { clusterId: 'ours', peerId: 7, uid: 10, revision: 20, shards: [0, 2], since: [10, 40], index: 30 };
const WANTED: Wanted = { name: 'a', uid: 10, revision: 20, config: CONFIG, shards: [0, 2], since: [10, 40] };

const PHASES: readonly CollectionPhase[] = [
  { kind: 'Opening' },
  { kind: 'Active' },
  { kind: 'Dead', error: { code: 'storage', detail: 'data.mdb is damaged' }, shards: null },
  { kind: 'Creating', replyTo: 0 },
  { kind: 'Deleting' },
  { kind: 'Abandoned' },
];

const CASES: Readonly<Record<string, { readonly belonging: Belonging | 'damaged' | null; readonly wanted: Wanted | null }>> = {
  'as desired': { belonging: MET, wanted: WANTED },
  'an older revision': { belonging: { ...MET, revision: 15 }, wanted: WANTED },
  'other shards': { belonging: { ...MET, shards: [0] }, wanted: WANTED },
  'replicas of an earlier life': { belonging: { ...MET, since: [10, 20] }, wanted: WANTED },
  'written before replicas had lives': { belonging: { ...MET, since: undefined }, wanted: WANTED },
  'of the same name, and deleted since': { belonging: { ...MET, uid: 5 }, wanted: WANTED },
  'not desired': { belonging: MET, wanted: null },
  'of a later entry, not desired yet': { belonging: { ...MET, uid: 51 }, wanted: null },
  'changed by a later entry': { belonging: { ...MET, revision: 51, shards: [1], index: 51 }, wanted: WANTED },
  'of another cluster': { belonging: { ...MET, clusterId: 'theirs' }, wanted: WANTED },
  'of a peer that this node was': { belonging: { ...MET, peerId: 6 }, wanted: WANTED },
  'of a node of its own': { belonging: null, wanted: null },
  'damaged, desired': { belonging: 'damaged', wanted: WANTED },
  'damaged, not desired': { belonging: 'damaged', wanted: null },
};

function inWords(finding: Finding): string {
  if (finding.kind === 'fault') return `fault: ${finding.detail}`;
  if (finding.kind !== 'move') return finding.kind;
  const { move } = finding;
  if (move.kind === 'setAside') return `set aside: ${move.reason}`;
  if (move.kind === 'delete') return 'delete';
  const { index, revision, shards, uid } = move.kind === 'create' ? (move.create.belonging as Belonging) : move.belonging;
  return `${move.kind} uid ${uid} revision ${revision} shards ${shards.join()} as of ${index}`;
}

/** What each case comes to, with the phases that lead to it. */
function table(): string {
  const lines: string[] = [];
  for (const [name, { belonging, wanted }] of Object.entries(CASES)) {
    const phasesByWords = new Map<string, string[]>();
    for (const phase of PHASES) {
      const holding = belonging === 'damaged' ? null : { name: 'a', config: CONFIG, belonging };
      const there: There = { phase, holding };
      const words = inWords(reconcile(there, wanted, DESIRED));
      phasesByWords.set(words, [...(phasesByWords.get(words) ?? []), phase.kind]);
    }
    lines.push(name, ...[...phasesByWords].map(([words, phases]) => `  ${phases.join(', ')}: ${words}`));
  }
  return lines.join('\n');
}

test('each thing that may be there has a way to what is desired', () => {
  assert.equal(
    table(),
    `
as desired
  Opening: fault: it is being opened
  Active: done
  Dead: fault: data.mdb is damaged
  Creating, Deleting: wait
  Abandoned: fault: it crashed too often and is stopped until the node starts again
an older revision
  Opening, Active, Dead: reshape uid 10 revision 20 shards 0,2 as of 50
  Creating, Deleting: wait
  Abandoned: fault: it crashed too often and is stopped until the node starts again
other shards
  Opening, Active, Dead: reshape uid 10 revision 20 shards 0,2 as of 50
  Creating, Deleting: wait
  Abandoned: fault: it crashed too often and is stopped until the node starts again
replicas of an earlier life
  Opening, Active, Dead: reshape uid 10 revision 20 shards 0,2 as of 50
  Creating, Deleting: wait
  Abandoned: fault: it crashed too often and is stopped until the node starts again
written before replicas had lives
  Opening, Active, Dead: reshape uid 10 revision 20 shards 0,2 as of 50
  Creating, Deleting: wait
  Abandoned: fault: it crashed too often and is stopped until the node starts again
of the same name, and deleted since
  Opening, Active, Dead, Abandoned: delete
  Creating, Deleting: wait
not desired
  Opening, Active, Dead, Abandoned: delete
  Creating, Deleting: wait
of a later entry, not desired yet
  Opening, Active, Dead, Abandoned: done
  Creating, Deleting: wait
changed by a later entry
  Opening: fault: it is being opened
  Active: done
  Dead: fault: data.mdb is damaged
  Creating, Deleting: wait
  Abandoned: fault: it crashed too often and is stopped until the node starts again
of another cluster
  Opening, Active, Dead, Abandoned: set aside: it belongs to another cluster
  Creating, Deleting: wait
of a peer that this node was
  Opening, Active, Dead, Abandoned: set aside: this node held it as another peer, which was removed
  Creating, Deleting: wait
of a node of its own
  Opening, Active, Dead, Abandoned: set aside: it was made outside of this cluster
  Creating, Deleting: wait
damaged, desired
  Opening, Creating, Deleting: wait
  Active, Dead, Abandoned: fault: the configuration of this node's copy cannot be read: move its folder away and start the node again for an empty one
damaged, not desired
  Opening, Creating, Deleting: wait
  Active: fault: the configuration of this node's copy cannot be read: move its folder away and start the node again for an empty one
  Dead, Abandoned: set aside: its configuration cannot be read
`.trim(),
  );
});

test('what is not there is created where it is desired, also without shards on this node', () => {
  assert.equal(inWords(reconcile(null, null, DESIRED)), 'done');
  assert.equal(inWords(reconcile(null, { ...WANTED, shards: [], since: [] }, DESIRED)), 'create uid 10 revision 20 shards  as of 50');
});

test('names that differ in case are two collections', () => {
  const { uid, revision, config, shards, since } = WANTED;
  const collections = new Map(['a', 'A'].map((name) => [name, { uid, revision, config, shards, since }]));
  assert.deepEqual([...wantedByFolder({ ...DESIRED, collections }, { desired: null, wanted: new Map() }).wanted.keys()], ['a', '+41']);
});

test('of what is desired again only what has changed is looked at', () => {
  const { uid, revision, config, shards, since } = WANTED;
  const collection = () => ({ uid, revision, config, shards, since });
  const collections = new Map(['a', 'b', 'c'].map((name) => [name, collection()]));
  const first = wantedByFolder({ ...DESIRED, collections }, { desired: null, wanted: new Map() });
  const next = new Map(collections).set('b', { ...collection(), revision: 9 }).set('d', collection());
  next.delete('c');
  const second = wantedByFolder({ ...DESIRED, collections: next }, { desired: { ...DESIRED, collections }, wanted: first.wanted });
  assert.deepEqual(
    [[...first.changed], [...second.changed]],
    [
      ['a', 'b', 'c'],
      ['c', 'b', 'd'],
    ],
  );
  assert.deepEqual(second.wanted, wantedByFolder({ ...DESIRED, collections: next }, { desired: null, wanted: new Map() }).wanted);
});
