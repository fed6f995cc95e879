/** From settings and options to what makes a node part of a cluster. */

import { existsSync } from 'node:fs';
import type { ClusterOptions } from '../actors/consensus/cluster-api.js';
import type { StartRestore } from '../actors/snapshots/restore-at-start.js';
import type { PeerTls } from '../cluster/transport/entrance.js';
import type { ListeningTransport } from '../cluster/transport/open.js';
import { SURVIVORS } from '../cluster/transport/refusal.js';
import { TRANSFER_METHODS } from '../protocols/model/cluster.js';
import { ConsensusLog, consensusFolder, forgetConsensus } from '../storage/consensus-log/log.js';
import { verifyConsensus } from '../storage/verify/verify-lmdb.js';
import type { ClusterStart } from './cli.js';
import { SettingsError } from './config/resolve.js';
import type { NodeSettings } from './config/settings.js';
import type { ModuleLog } from './log.js';

/** With the thread that keeps the consensus log, which is watched with those of the engine. */
export type OwnClusterOptions = ClusterOptions & { readonly store: ConsensusLog; readonly transport: ListeningTransport };

/** What the nodes of a cluster have in common: `service.api_key`, then the other key while it is being changed. */
function keysOf({ service }: NodeSettings): string[] {
  return [service.api_key, service.alt_api_key].filter((key): key is string => key !== null && key !== '');
}

/** One line for each setting of a cluster's node by which no peer could be known, starting with its key. */
export function memberProblems(settings: NodeSettings): string[] {
  const { cluster, service } = settings;
  if (!cluster.enabled || cluster.p2p.enable_tls || keysOf(settings).length > 0) return [];
  const wanted = service.enforce_internal_auth ? 'enforce_internal_auth' : service.read_only_api_key ? 'read_only_api_key' : null;
  const hint = 'needs service.api_key or cluster.p2p.enable_tls in a cluster: by them the nodes know each other on the internal port';
  return wanted === null ? [] : [`service.${wanted}: ${hint}`];
}

/** One line for each option that needs distributed mode where that is off. */
export function misplacedOptions({ uri, bootstrap, reinit }: ClusterStart, restore: StartRestore | null, settings: NodeSettings): string[] {
  if (settings.cluster.enabled) {
    if (!settings.cluster.p2p.enable_tls && [uri, bootstrap].some((address) => address?.startsWith('https:'))) {
      const option = uri?.startsWith('https:') ? '--uri' : '--bootstrap';
      return [`${option}: https:// asks for TLS between peers: set cluster.p2p.enable_tls to true on all nodes, or write http://`];
    }
    if (restore === null) return [];
    const option = restore.storage === null ? '--snapshot' : '--storage-snapshot';
    return [
      `${option}: is for nodes of their own; in a cluster restore a snapshot by a request: PUT /collections/{collection_name}/snapshots/recover`,
    ];
  }
  const given = [...(uri === null ? [] : ['--uri']), ...(bootstrap === null ? [] : ['--bootstrap']), ...(reinit ? ['--reinit'] : [])];
  const hint = 'is for nodes of a cluster; set cluster.enabled to true (variable SERVICE__CLUSTER__ENABLED=true), or leave it out';
  return given.map((option) => `${option}: ${hint}`);
}

/**
 * Opens the consensus log and takes the internal port. The storage folder must be locked. tls: null: peers connect without. Null: a node of its own.
 * Errors: SettingsError where an option is missing; `storage` for a log that is damaged, saying how to recover; PeerPortError.
 */
export async function openCluster(
  settings: NodeSettings,
  start: ClusterStart,
  tls: PeerTls | null,
  version: string,
  log: ModuleLog,
  onGivenUp: (why: string) => void,
): Promise<OwnClusterOptions | null> {
  const { cluster, service, storage } = settings;
  if (!cluster.enabled) {
    const folder = consensusFolder(storage.storage_path);
    if (existsSync(folder)) log.warn(WITHOUT_CLUSTER, { folder });
    return null;
  }
  if (start.reinit) {
    forgetConsensus(storage.storage_path);
    log.warn('what consensus had stored is forgotten, the collections are kept (--reinit)', {
      folder: consensusFolder(storage.storage_path),
    });
  }
  const survivor = SURVIVORS.find((name) => name === cluster.survivor) ?? 'local';
  const store = new ConsensusLog(storage.storage_path, verifyConsensus, storage.performance.thread_silence_sec * 1000);
  let transport: ListeningTransport | null = null;
  try {
    const { identity } = await store.load();
    const isMember = identity !== null && identity.clusterId !== null && !identity.removed;
    if (!isMember && start.uri !== null && start.uri === start.bootstrap) throw new SettingsError([OWN_ADDRESS]);
    if ((identity === null || identity.clusterId === null) && start.uri === null && start.bootstrap === null)
      throw new SettingsError([NOT_TOLD]);
    // Loaded here, since a node of its own needs none of it.
    const [{ openPeerTransport }, { memberKey }] = await Promise.all([
      import('../cluster/transport/open.js'),
      import('../cluster/transport/proof.js'),
    ]);
    const entrance = { tls, keys: keysOf(settings).map(memberKey) };
    transport = await openPeerTransport({ host: service.host, port: cluster.p2p.port, release: version, survivor, entrance, log });
  } catch (error) {
    await store.close();
    throw error;
  }
  return {
    store,
    transport,
    uri: start.uri,
    bootstrap: start.bootstrap,
    port: transport.port,
    version,
    tickMs: cluster.consensus.tick_period_ms,
    compactEntries: cluster.consensus.compact_wal_entries,
    comparePeriodMs: 1000 * cluster.digest_period_sec,
    restMs: 1000 * cluster.leader_spread_sec,
    onGivenUp,
    survives: survivor !== 'never',
    listens: storage.node_type === 'Listener',
    transferMethod: TRANSFER_METHODS.find((method) => method === storage.shard_transfer_method) ?? null,
    transferLimits: {
      incoming: storage.performance.incoming_shard_transfers_limit,
      outgoing: storage.performance.outgoing_shard_transfers_limit,
    },
  };
}

const WITHOUT_CLUSTER =
  'this folder is that of a peer of a cluster, and cluster.enabled is false: the node serves what is here on its own; what is created or deleted meanwhile does not hold when it is back in the cluster';

const OWN_ADDRESS =
  "--bootstrap: this is the node's own address (--uri), and the node is part of no cluster yet: name another peer, or leave --bootstrap out to found a cluster";

const NOT_TOLD =
  '--uri: this node is part of no cluster yet; to found one, say where other peers reach it (--uri http://host:port of its internal port), or name a peer to join (--bootstrap http://host:port)';
