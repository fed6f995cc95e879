/** The shard actor: supervises its replica and tells the collection how it does. */

import { join } from 'node:path';
import type { ReplicationInput } from '../../cluster/replication/messages.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import type { CollectionMessage } from '../collection/messages.js';
import type { NodeServices } from '../context/services.js';
import { type CollectionEntry, showFailed } from '../context/view.js';
import { replicaKey } from '../replica/files.js';
import type { ReplicaMessage } from '../replica/messages.js';
import { replicaBehaviour } from '../replica/shell.js';
import type { ActorContext, ActorRef, Behaviour } from '../runtime/behaviour.js';
import { replicationBehaviour } from '../shard-log/shell.js';
import type { ShardEffect, ShardMessage } from './messages.js';
import type { ShardState } from './state.js';
import { startShard, stepShard } from './step.js';

export interface ShardProps {
  readonly shardId: number;
  /** Folder of the collection. */
  readonly folder: string;
  readonly entry: CollectionEntry;
  readonly services: NodeServices;
  readonly parent: ActorRef<CollectionMessage>;
}

const REPLICATION = 'replication';
/** A pause ends by itself before. */
const END_WRITES_MS = 5000;

type ShardContext = ActorContext<ShardProps, ShardMessage>;

export function shardBehaviour(): Behaviour<ShardProps, ShardState, ShardMessage, ShardEffect> {
  const children = new Children();
  return {
    kind: 'shard',
    start: () => startShard(),
    step: stepShard,
    perform: (effect, context) => decideInRow(PERFORM, { children, context }, effect),
    summarize: (message) => ('error' in message ? message.error.detail : ''),
    // Without its part in the log a replica is of no use: the shard crashes and starts again.
    childFailed: (name, error) => (name === REPLICATION ? null : { kind: 'replicaStopped', error }),
  };
}

interface Performing {
  readonly children: Children;
  readonly context: ShardContext;
}

const PERFORM: Row<ShardEffect, Performing, void> = {
  startReplica: ({ children, context }) => children.start(context),
  configureReplica: ({ children, context }, { config, replyTo }) => {
    // A collection of one node, or of another cluster, has become this cluster's: it takes part in another log.
    children.follow(context);
    if (children.replica === null) context.reply(replyTo, true);
    else context.forward(children.replica, { kind: 'configure', config, replyTo }, replyTo);
  },
  reply: ({ context }, { replyTo }) => context.reply(replyTo, true),
  closeReplica: ({ children, context }) => {
    const { log } = children;
    const close = () => {
      // Another life of the shard has begun.
      if (children.log !== log) return;
      children.stopLog(context);
      if (children.replica?.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'replicaClosed' });
    };
    // Writes that a leader has taken are answered first.
    if (log === null) close();
    else log.ask<true>((caller) => ({ kind: 'pause', caller }), END_WRITES_MS).then(close, close);
  },
  closeFiles: ({ children, context }, { error }) => {
    children.replica = null;
    children.log?.report({ kind: 'closed', error });
    closeFiles(error, context);
  },
  tellOpened: ({ children, context }) => {
    const { parent, shardId } = context.props;
    children.log?.report({ kind: 'opened' });
    parent.report({ kind: 'shardOpened', shardId });
  },
  tellFailed: ({ children, context }, { error }) => {
    const { parent, shardId } = context.props;
    children.log?.report({ kind: 'closed', error });
    parent.report({ kind: 'shardFailed', shardId, error });
  },
  tellClosedAndStop: ({ context }) => {
    const { parent, shardId } = context.props;
    parent.report({ kind: 'shardClosed', shardId });
    context.stop();
  },
};

/** The actors below a shard: its replica, and the replica's part in the shard's log. */
class Children {
  replica: ActorRef<ReplicaMessage> | null = null;
  /** Null for a shard that its cluster does not know. */
  log: ActorRef<ReplicationInput> | null = null;
  /** `uid` of the collection whose log that is; undefined until it is known. */
  #uid: number | null | undefined;

  /** Begins a life of the shard: the children of an earlier one ended with it. */
  start(context: ShardContext): void {
    this.replica = startReplica(context);
    this.log = null;
    this.#uid = undefined;
    this.follow(context);
  }

  /** Takes part in the log of the collection that the shard belongs to now. */
  follow(context: ShardContext): void {
    const uid = context.props.entry.belonging?.uid ?? null;
    if (uid === this.#uid) return;
    if (this.log !== null) this.stopLog(context);
    this.#uid = uid;
    this.log = startReplication(context);
  }

  stopLog(context: ShardContext): void {
    const { entry, shardId } = context.props;
    context.stopChild(REPLICATION);
    entry.replications.delete(shardId);
    this.log = null;
  }
}

/** Folder of a shard's local replica. */
export function replicaFolder(collectionFolder: string, shardId: number): string {
  return join(collectionFolder, String(shardId));
}

function startReplica(context: ShardContext): ActorRef<ReplicaMessage> {
  const { entry, folder, services, shardId } = context.props;
  const key = replicaKey(entry.name, shardId);
  return context.spawn(replicaBehaviour(), 'replica', {
    key,
    shardId,
    folder: replicaFolder(folder, shardId),
    entry,
    services,
    parent: context.self,
  });
}

function startReplication(context: ShardContext): ActorRef<ReplicationInput> | null {
  const { entry, services, shardId } = context.props;
  // A collection that was made outside of this cluster takes part in nothing until the cluster has it.
  if (entry.belonging === null && !services.assignments.isAlone) return null;
  const shard = { collection: entry.name, uid: entry.belonging?.uid ?? 0, shardId };
  return context.spawn(replicationBehaviour(), REPLICATION, { key: replicaKey(entry.name, shardId), shard, entry, services });
}

function closeFiles(error: ErrorFacts, context: ShardContext): void {
  const { entry, services, shardId } = context.props;
  showFailed(entry, shardId, error);
  services.files.close(replicaKey(entry.name, shardId)).catch((failure: unknown) => {
    context.log.warn(`${context.path}: the replica's files could not be closed: ${String(failure)}`);
  });
}
