/** Restores whose shards change their leader after they were planned: the archive's thread, the other nodes and the agreed state are the test's. */

import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { STAGED_ON_DISK } from '../../../actors/collection/staged-files.js';
import { describeCollection } from '../../../actors/snapshots/archived-collection.js';
import { type RestoreParts, restoreArchive } from '../../../actors/snapshots/restore.js';
import type { DataCall } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import { sampleConfig } from '../samples.js';

const [SELF, BEFORE, AFTER] = [1, 2, 3];
const folder = mkdtempSync(join(tmpdir(), 'troupe-restore-'));
writeFileSync(join(folder, 'data'), 'rows');
after(() => rm(folder, { recursive: true }));

/** A restore of shards 0 and 1 of `c`. answer: what the leader of a shard says to its files. leaderOf: who leads a shard now. */
function world(answer: (peer: number, shardId: number) => Promise<void>, leaderOf: (shardId: number) => number) {
  const installs: string[] = [];
  const warnings: string[] = [];
  let unpacked = 0;
  let nowMs = 0;
  const config = sampleConfig();
  const shards = [0, 1].map((id) => ({ id, key: null, points: 1, at: NO_TAG, files: [{ path: 'data', bytes: 4 }] }));
  const described = { name: 'c', description: describeCollection({ config, keys: [], times: new Map() }), shards };
  const replicas = new Map([SELF, BEFORE, AFTER].map((peer) => [peer, 'Active']));
  const record = () => ({
    uid: 7,
    config,
    resharding: null,
    keyCopy: null,
    shards: new Map([0, 1].map((id) => [id, { key: null, replicas, leader: leaderOf(id) }])),
  });
  const find = () => ({ name: 'c', entry: null, record: record() });
  const call = async (peer: number, { kind, ...rest }: DataCall) => {
    if (kind !== 'installRestored') return { kind: 'done', changed: 0 };
    const { shardId } = (rest as unknown as { shard: { shardId: number } }).shard;
    installs.push(`${shardId} on ${peer}`);
    await answer(peer, shardId);
    return { kind: 'done', changed: 0 };
  };
  const parts = {
    services: {
      assignments: { peerId: SELF },
      calls: { call },
      // Every file that is read is the one of this test.
      store: { staging: (name: string) => join(folder, name), staged: { ...STAGED_ON_DISK, read: readData, remove: async () => {} } },
      verified: { check: async () => null },
    },
    archive: {
      unpack: async () => {
        unpacked++;
        const kind = 'collection';
        return { bytes: 4, sha256: '', manifest: { kind, version: '', createdAt: '', peer: 9, aliases: [], collections: [described] } };
      },
    },
    names: { known: find, find },
    cluster: null,
    nowMs: () => nowMs,
    dateMs: () => nowMs,
    pause: async (ms: number) => {
      nowMs += ms;
    },
    log: { warn: (message: string) => warnings.push(message) },
    freeBytesMin: 0,
  } as unknown as RestoreParts;
  const restore = () =>
    restoreArchive(parts, {
      target: { collection: 'c', shardId: null },
      file: 'x.snapshot',
      bases: [],
      options: { priority: 'snapshot', checksum: null, until: null },
      signal: new AbortController().signal,
      onProgress: () => {},
    });
  return { installs, restore, unpacked: () => unpacked, warnings };
}

const readData = (_folder: string, path: string, offset: number, bytes: number) =>
  STAGED_ON_DISK.read(folder, path.split('/').at(-1) as string, offset, bytes);
const notLeader = () => new TroupeError('conflict', 'shard 1 of c is not led here', { reason: 'notLeader' });

test('a restore whose shard gets another leader before its files are in place unpacks again and gives that one the files, and no shard twice', async () => {
  let leader = BEFORE;
  const refuse = async (peer: number, shardId: number) => {
    if (shardId !== 1 || peer !== BEFORE) return;
    leader = AFTER;
    throw notLeader();
  };
  const { installs, restore, unpacked, warnings } = world(refuse, (shardId) => (shardId === 1 ? leader : BEFORE));
  await restore();
  assert.deepEqual(installs, ['0 on 2', '1 on 2', '1 on 3']);
  assert.equal(unpacked(), 2);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] as string, /planned again: shard 1 of c is not led here/);
});

test('a restore waits for the next leader of a shard whose leader is gone', async () => {
  let asked = 0;
  const gone = async (peer: number) => {
    if (peer === BEFORE) throw new TroupeError('unavailable', 'peer 2 does not answer');
  };
  const { installs, restore } = world(gone, () => (asked++ < 20 ? BEFORE : AFTER));
  await restore();
  assert.deepEqual(installs, ['0 on 2', '0 on 3', '1 on 3']);
});

test('a restore that is refused by a leader that stays, or for another reason, is not planned again', async () => {
  const stays = world(
    () => Promise.reject(notLeader()),
    () => BEFORE,
  );
  await assert.rejects(stays.restore(), { code: 'conflict' });
  assert.deepEqual(stays.installs, ['0 on 2']);
  let leader = BEFORE;
  const full = world(
    async () => {
      leader = AFTER;
      throw new TroupeError('outOfDisk', 'no room');
    },
    () => leader,
  );
  await assert.rejects(full.restore(), { code: 'outOfDisk' });
  assert.deepEqual(full.installs, ['0 on 2']);
});

test('a restore whose shards change their leader again and again gives up', async () => {
  let leader = BEFORE;
  const { installs, restore } = world(
    async (peer) => {
      leader = peer === BEFORE ? AFTER : BEFORE;
      throw notLeader();
    },
    () => leader,
  );
  await assert.rejects(restore(), { code: 'conflict' });
  assert.equal(installs.length, 5);
});
