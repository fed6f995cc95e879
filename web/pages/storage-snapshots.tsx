/** Snapshots of the whole storage: all collections of this node, with their aliases. */

import type { ReactNode } from 'react';
import { SnapshotList } from '../parts/snapshot-list.js';

export function StorageSnapshotsPage(): ReactNode {
  return (
    <>
      <div className="head">
        <h1>Snapshots</h1>
      </div>
      <p>
        A snapshot of the storage has all collections of this node and their aliases, as of one moment for each shard. Reads and writes go
        on while it is made. Snapshots of one collection are on its own page, which also restores them.
      </p>
      <SnapshotList path="/snapshots" none="There are no snapshots of the storage on this node." />
      <div className="sheet">
        <h2>To restore one</h2>
        <p>A node restores its whole storage as it starts, from a file that you have downloaded, into an empty folder:</p>
        <pre>npm start -- --storage-snapshot storage.snapshot</pre>
        <p className="small faint">In a cluster each node saves its own shards: make a snapshot on each.</p>
      </div>
    </>
  );
}
