/** Puts together what the transfers of a node need. callPeer: also for this node itself. asked: see `Sight`. */

import type { PeerCalls } from '../../cluster/data-messages.js';
import type { ReplicationInput } from '../../cluster/replication/messages.js';
import { type GivingBack, givenBack, leadsToGiveBack } from '../../cluster/state/giving-back.js';
import type { TransferRun } from '../../cluster/transfer/runs.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import { isSameTag, NO_TAG } from '../../protocols/model/shard-log.js';
import type { ReplicaKey } from '../../storage/threads/messages.js';
import { type ClusterOptions, TRANSFER_LIMITS } from '../consensus/cluster-api.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry, NodeView } from '../context/view.js';
import { type IndexAs, migrationPorts } from '../migration/start.js';
import type { ActorRef } from '../runtime/behaviour.js';
import type { Clock } from '../runtime/ports.js';
import type { TransferBoard } from './board.js';
import type { Sight } from './messages.js';
import type { LeadingShard, TransferPorts } from './run/ports.js';
import { discardFiles } from './run/receive-files.js';
import { sendFiles } from './run/send-files.js';
import type { TransfersProps } from './shell.js';

/** Between two looks at the agreed state, in ticks of consensus. */
const LOOK_TICKS = 2;
/** Between two comparisons of a follower's digest with its leader's. */
const COMPARE_PERIOD_MS = 600_000;
/** Without a transfer or anything of the kind, before the leads of shards are spread. */
const REST_MS = 30_000;
/** Somewhat longer than it can take. */
export const HAND_OVER_MS = 6000;
const PROPOSE_MS = 10_000;
const POSITION_MS = 2000;
/** A step that takes longer is begun again. A digest that is asked for the first time reads all points. */
const ATTACH_MS = 60_000;
const COMPARE_MS = 600_000;
const FILL_MS = 120_000;
const REQUIRE_MS = 120_000;
/** Somewhat longer than a pause. */
const PAUSE_MS = 4000;

export function transfersProps(
  services: NodeServices,
  view: NodeView,
  options: Pick<ClusterOptions, 'tickMs' | 'transferLimits' | 'comparePeriodMs' | 'restMs'>,
  board: TransferBoard,
  clock: Clock,
  { asked, callPeer, indexAs }: { readonly asked: Set<string>; readonly callPeer: PeerCalls['call']; readonly indexAs: IndexAs },
): TransfersProps {
  const shardOf = (collection: string, uid: number, shardId: ShardId) => leadingShard(entryOf(view, collection, uid), shardId);
  const ports: TransferPorts = {
    isAnnounced: ({ collection, transfer: { shardId, to }, uid }) =>
      services.assignments.of({ collection, uid, shardId })?.replicas.get(to) === 'Partial',
    leadingShard: ({ collection, transfer, uid }) => shardOf(collection, uid, transfer.shardId),
    propose: async (operation) => {
      await services.propose(operation, PROPOSE_MS);
    },
    sendFiles: async (run, onSent, signal) => sendFiles(services, sourceKey(view, run), run, onSent, signal),
    nowMs: () => clock.nowMs(),
  };
  const tickMs = LOOK_TICKS * options.tickMs;
  const comparePeriodTicks = Math.ceil((options.comparePeriodMs ?? COMPARE_PERIOD_MS) / tickMs);
  const restTicks = Math.ceil((options.restMs ?? REST_MS) / tickMs);
  return {
    settings: { limits: options.transferLimits ?? TRANSFER_LIMITS, comparePeriodTicks, restTicks },
    board,
    ports,
    migrationPorts: migrationPorts({ services, clock, callPeer, indexAs }),
    look: () => look(services, asked),
    asked,
    giveBack: (lead) => giveBack(services, callPeer, lead),
    tickMs,
    shardOf,
    handOver: async ({ term, collection, from, shardId, to, uid }) => {
      await callPeer(from, { kind: 'handOver', shard: { collection, uid, shardId }, term, to }, HAND_OVER_MS);
    },
    discardFiles: (files) => discardFiles(services, files),
  };
}

function look({ assignments, files }: NodeServices, asked: ReadonlySet<string>): Sight {
  const { agreed, connected, full, leadsAtStart, leadsCluster, peerId } = assignments;
  const givingBack = agreed === null ? [] : leadsToGiveBack(agreed, peerId, leadsAtStart, files.lost);
  return { agreed, self: peerId, leads: leadsCluster, reachable: new Set([...connected, peerId]), full, givingBack, asked };
}

/** A replica that was made anew meanwhile, as its files were gone as well, is empty; as long as it is no transfer's target it stays so. */
async function giveBack({ propose }: NodeServices, callPeer: PeerCalls['call'], lead: GivingBack): Promise<void> {
  const { collection, shardId, since, term, to, uid } = lead;
  const answer = await callPeer(to, { kind: 'position', shard: { collection, uid, shardId }, since, term }, POSITION_MS);
  if (answer.kind !== 'position' || isSameTag(answer.last, NO_TAG))
    throw new TroupeError('conflict', `its replica is empty: its files may be gone as well`);
  await propose(givenBack(lead), PROPOSE_MS);
}

function leadingShard(entry: CollectionEntry | null, shardId: ShardId): LeadingShard | null {
  const actor = entry?.replications.get(shardId)?.actor;
  return actor === undefined ? null : shardBehind(actor);
}

/** The replication actor's messages as calls. */
function shardBehind(actor: ActorRef<ReplicationInput>): LeadingShard {
  return {
    attach: (peer, mayReset) => actor.ask((caller) => ({ kind: 'attach', caller, peer, mayReset }), ATTACH_MS),
    compare: (peer) => actor.ask((caller) => ({ kind: 'compare', caller, peer }), COMPARE_MS),
    fill: (peer, buckets) => actor.ask((caller) => ({ kind: 'fill', caller, peer, buckets }), FILL_MS),
    require: async (peer) => {
      await actor.ask<true>((caller) => ({ kind: 'require', caller, peer }), REQUIRE_MS);
    },
    release: (peer) => void actor.report({ kind: 'release', peer }),
    pause: async () => {
      await actor.ask<true>((caller) => ({ kind: 'pause', caller }), PAUSE_MS);
    },
    resume: () => void actor.report({ kind: 'resume' }),
  };
}

function sourceKey(view: NodeView, { collection, transfer, uid }: TransferRun): ReplicaKey {
  const replica = entryOf(view, collection, uid)?.replicas.get(transfer.shardId);
  if (replica === undefined) throw new TroupeError('unavailable', 'the replica that leads the shard is not open');
  return replica.key;
}

function entryOf(view: NodeView, collection: string, uid: number): CollectionEntry | null {
  const entry = view.collections.get(collection);
  return entry?.belonging?.uid === uid ? entry : null;
}
