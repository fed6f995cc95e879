/**
 * Opens a shard of a stopped node and ends in the middle of applying what is logged, as a process does for which that needs too much memory.
 * Arguments: storage folder, collection; `log`: logs an operation by a filter first.
 */

import { openCollectionStore } from '../../actors/collection/store.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { Environment } from '../../storage/disk/lmdb.js';
import { Attempts } from '../../storage/replica/attempts.js';
import { ReplicaStore } from '../../storage/replica/store.js';
import { logTo } from '../storage/replica/support.js';

const [storage = '', collection = '', what] = process.argv.slice(2);
const store = await openCollectionStore(storage, () => {});
const folder = folderName(collection);
const { config } = await store.load(folder);

let isApplying = false;
const { begin } = Attempts.prototype;
Attempts.prototype.begin = function (place) {
  begin.call(this, place);
  isApplying = true;
};
const { write } = Environment.prototype;
Environment.prototype.write = function <T>(run: () => T): T {
  const dying = () => {
    const done = run();
    if (isApplying) process.kill(process.pid, 'SIGKILL');
    return done;
  };
  return write.call(this, dying) as T;
};

const hooks = {
  publish: () => {},
  published: () => {},
  warn: () => {},
  now: () => Date.now(),
  beginSlice: () => () => false,
  beginPortion: () => () => false,
  pause: async () => {},
};
const spec = { key: `${collection}/0`, folder: `${store.path(folder)}/0`, config, readers: 1 };
const replica = await ReplicaStore.open(spec, null, hooks);
if (what === 'log') {
  const selector = { kind: 'filter', filter: { must: [], mustNot: [], should: [], minShould: null } } as never;
  logTo(replica, [{ operation: { kind: 'setPayload', payload: { color: 'blue' }, selector, key: null }, chained: false }]);
  replica.operations.apply();
}
throw new Error('it was applied');
