/** The shard actor: supervises its replica and tells the collection how it does. */

import { join } from 'node:path';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionMessage } from '../collection/messages.js';
import type { NodeServices } from '../context/services.js';
import { type CollectionEntry, showAbandoned } from '../context/view.js';
import type { ReplicaMessage } from '../replica/messages.js';
import { replicaBehaviour } from '../replica/shell.js';
import { type ActorContext, type ActorRef, type Behaviour, unreachable } from '../runtime/behaviour.js';
import type { ReplicationMessage } from '../shard-log/messages.js';
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

type ShardContext = ActorContext<ShardProps, ShardMessage>;

export function shardBehaviour(): Behaviour<ShardProps, ShardState, ShardMessage, ShardEffect> {
  let replica: ActorRef<ReplicaMessage> | null = null;
  /** Null outside of a cluster. */
  let replication: ActorRef<ReplicationMessage> | null = null;
  /** `uid` of the collection whose log that is; undefined until it is known. */
  let followed: number | null | undefined;

  /** Has a part in the log of the shard that the collection belongs to. */
  function follow(context: ShardContext): void {
    const { entry } = context.props;
    const uid = entry.belonging?.uid ?? null;
    if (uid === followed) return;
    if (replication !== null) stopReplication(context);
    followed = uid;
    replication = startReplication(context);
  }

  function perform(effect: ShardEffect, context: ShardContext): void {
    const { parent, shardId } = context.props;
    switch (effect.kind) {
      case 'startReplica':
        replica = startReplica(context);
        // What an earlier life of this actor had has ended with it.
        replication = null;
        followed = undefined;
        follow(context);
        break;
      case 'configureReplica':
        // What was a node's own, or another cluster's, has become this one's: it has another log to take part in.
        follow(context);
        if (replica === null) context.reply(effect.replyTo, true);
        else context.forward(replica, { kind: 'configure', config: effect.config, replyTo: effect.replyTo }, effect.replyTo);
        break;
      case 'reply':
        context.reply(effect.replyTo, true);
        break;
      case 'closeReplica':
        stopReplication(context);
        replication = null;
        if (replica?.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'replicaClosed' });
        break;
      case 'abandonReplica':
        replica = null;
        replication?.report({ kind: 'closed', error: effect.error });
        abandonReplica(effect.error, context);
        break;
      case 'tellOpened':
        replication?.report({ kind: 'opened' });
        parent.report({ kind: 'shardOpened', shardId });
        break;
      case 'tellDied':
        replication?.report({ kind: 'closed', error: effect.error });
        parent.report({ kind: 'shardDied', shardId, error: effect.error });
        break;
      case 'tellClosedAndStop':
        parent.report({ kind: 'shardClosed', shardId });
        context.stop();
        break;
      default:
        unreachable(effect);
    }
  }

  return {
    kind: 'shard',
    start: () => startShard(),
    step: stepShard,
    perform,
    summarize: (message) => ('error' in message ? message.error.detail : ''),
    // Without its part in the log a replica is of no use: the shard begins anew.
    childFailed: (name, error) => (name === REPLICATION ? null : { kind: 'replicaGaveUp', error }),
  };
}

/** Key of a shard's local replica. */
export function replicaKey(collection: string, shardId: number): string {
  return `${collection}/${shardId}`;
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

function startReplication(context: ShardContext): ActorRef<ReplicationMessage> | null {
  const { entry, services, shardId } = context.props;
  if (services.barrier === null || entry.belonging === null) return null;
  const shard = { collection: entry.name, uid: entry.belonging.uid, shardId };
  return context.spawn(replicationBehaviour(), REPLICATION, { key: replicaKey(entry.name, shardId), shard, entry, services });
}

function stopReplication(context: ShardContext): void {
  context.stopChild(REPLICATION);
  context.props.entry.replications.delete(context.props.shardId);
}

function abandonReplica(error: ErrorFacts, context: ShardContext): void {
  const { entry, services, shardId } = context.props;
  showAbandoned(entry, shardId, error);
  services.files.close(replicaKey(entry.name, shardId)).catch((failure: unknown) => {
    context.log.warn(`${context.path}: the replica's files could not be closed: ${String(failure)}`);
  });
}
