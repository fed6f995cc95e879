import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeCommand, encodeCommand } from '../../cluster/state/command-codec.js';
import { emptyState } from '../../cluster/state/state.js';
import { decodeState, encodeState } from '../../cluster/state/state-codec.js';
import { configOf, Log, membersOf } from './samples.js';

const NOOP = encodeCommand({ origin: 1, session: 1, sequence: 1, doneBelow: 1, command: { kind: 'noop' } });

/** The operation with a part of its text replaced. */
function changed(from: string, to: string): Uint8Array {
  const text = Buffer.from(NOOP).toString('utf8');
  assert.ok(text.includes(from));
  return Buffer.from(text.replace(from, to), 'utf8');
}

test('a command is JSON with a version', () => {
  assert.equal(
    Buffer.from(NOOP).toString('utf8'),
    '{"version":3,"origin":1,"session":1,"sequence":1,"doneBelow":1,"operation":{"kind":"noop"}}',
  );
});

test('fields have their place whatever order the proposal had', () => {
  const operation = { placement: [[1]], kind: 'createShardKey', closed: false, initialState: null, key: 'k', collection: 'a' } as const;
  const bytes = encodeCommand({ command: operation, doneBelow: 1, sequence: 2, session: 3, origin: 4 });
  assert.match(Buffer.from(bytes).toString(), /"origin":4.*"kind":"createShardKey","collection":"a","key":"k","placement":\[\[1\]\]/);
});

test('what a later release wrote stops this one with a message that says so', () => {
  const refused = (bytes: Uint8Array, message: RegExp) => assert.throws(() => decodeCommand(bytes), { code: 'storage', message });
  const operation = { kind: 'createCollection', name: 'a', config: {}, placement: [[1]] };
  const bare = JSON.stringify({ version: 3, origin: 1, session: 1, sequence: 1, doneBelow: 1, operation });
  refused(Buffer.from(bare), /config is not an object with `params`/);
  refused(
    changed('"version":3', '"version":4'),
    /a command of the cluster has version 4, this release reads 3: run the release that wrote it/,
  );
  refused(changed('"noop"', '"explode"'), /operation\.kind is unknown to this release: it is damaged or was written by a later release/);
  refused(changed('"kind":"noop"', '"kind":"noop","loud":true'), /operation\.loud is unknown to this release/);
  refused(changed('"origin":1', '"origin":"1"'), /origin is not an unsigned integer/);
  refused(changed('"origin":1,', ''), /origin is missing/);
  refused(NOOP.subarray(0, 20), /it is not JSON/);
});

test('a state of a later release is refused, and damage is named', () => {
  const state = { ...emptyState('c1'), membership: membersOf([1]) };
  const text = Buffer.from(encodeState(state)).toString('utf8');
  assert.deepEqual(decodeState(Buffer.from(text)), state);
  assert.throws(() => decodeState(Buffer.from(text.replace('"version":4', '"version":9'))), /the cluster's state has version 9/);
  assert.throws(
    () => decodeState(Buffer.from(text.replace('"voter":true', '"voter":1'))),
    /membership\[0\]\.voter is neither true nor false/,
  );
});

test('what an earlier build of this version wrote is read: its words for terms and shard maps, and refusals without a reason', () => {
  const changes = '[{"collection":"a","uid":2,"shardId":0,"peerId":11,"from":null,"to":"Active","clock":3}]';
  const stored = `{"version":3,"origin":11,"session":1,"sequence":8,"doneBelow":1,"operation":{"kind":"setReplicaStates","changes":${changes}}}`;
  const { command } = decodeCommand(Buffer.from(stored));
  assert.deepEqual(command.kind === 'setReplicaStates' ? command.changes[0]?.term : undefined, 3);
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf(), placement: [[11]] });
  log.propose({ kind: 'createCollection', name: 'a', config: configOf(), placement: [[11]] });
  const text = Buffer.from(encodeState(log.state)).toString();
  assert.match(text, /"autoReplication":false,"layout":2,"resharding":null/);
  const earlier = text.replace(/,"reason":null,"outcome":null/, '');
  assert.notEqual(earlier, text);
  assert.deepEqual(decodeState(Buffer.from(earlier)), log.state);
});
