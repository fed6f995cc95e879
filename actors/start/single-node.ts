/** A node of its own. */

import { TroupeError } from '../../protocols/errors.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { ownShards } from '../collection/config-file.js';
import { NO_CALLS } from '../requests/answer-call.js';
import { Names } from '../requests/collection-names.js';
import type { CollectionView } from '../requests/report.js';
import { type LiveNode, type NodeBase, runNode } from './node-base.js';
import { NodeOnDisk } from './node-on-disk.js';

/** Longest time a collection may take to open, change or go, unless a request says less. */
const ADMINISTRATION_MS = 600_000;

export function startSingleNode(base: NodeBase): SingleNode {
  const propose = () => Promise.reject(new TroupeError('standalone', 'Distributed mode disabled'));
  return new SingleNode(runNode(base, { ...base.services, calls: NO_CALLS, propose, barrier: null }, null));
}

export class SingleNode extends NodeOnDisk {
  readonly cluster = null;

  constructor(running: LiveNode) {
    let areOpen = false;
    running.ready.then(
      () => {
        areOpen = true;
      },
      () => {},
    );
    const checkKnows = (): void => {
      if (!areOpen) throw new TroupeError('unavailable', 'this node has not opened all its collections yet: retry', { retryAfterMs: 1000 });
    };
    super(running, new Names(running.view, () => null, checkKnows));
  }

  createCollection(name: string, config: CollectionConfig, timeoutMs = ADMINISTRATION_MS): Promise<boolean> {
    const folder = folderName(name);
    return this.withReplicaRoom(name, ownShards(config).length, () =>
      this.running.actor.ask((replyTo) => ({ kind: 'create', name, folder, config, replyTo }), timeoutMs),
    );
  }

  async updateCollection(
    name: string,
    change: (config: CollectionConfig) => CollectionConfig,
    timeoutMs = ADMINISTRATION_MS,
  ): Promise<boolean> {
    return this.names.entry(name).actor.ask((replyTo) => ({ kind: 'update', change, replyTo }), timeoutMs);
  }

  deleteCollection(name: string, timeoutMs = ADMINISTRATION_MS): Promise<boolean> {
    const folder = this.running.view.collections.get(name)?.folder ?? folderName(name);
    return this.running.actor.ask((replyTo) => ({ kind: 'delete', folder, replyTo }), timeoutMs);
  }

  changeAliases(actions: readonly AliasAction[], timeoutMs = ADMINISTRATION_MS): Promise<boolean> {
    return this.running.actor.ask((replyTo) => ({ kind: 'changeAliases', actions, replyTo }), timeoutMs);
  }

  async wholeInfo(name: string): Promise<CollectionView> {
    return this.info(name);
  }
}
