/** `troupe cluster`: nodes of a cluster, and where shards are. */

import type { ResultOf } from '../../protocols/openapi/operations.js';
import { argumentWords, confirm, jsonLine, readArguments, wholeNumber, wrongAction } from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, type NodeConnection, withNode } from '../client/connection.js';
import { bytesText, tableText } from '../client/tables.js';
import { type Tool, wrongArguments } from '../client/tool.js';

type Plan = ResultOf<'drain_peer'>;
type Nodes = ResultOf<'cluster_telemetry'>;

const OPTIONS = {
  from: { type: 'string' },
  to: { type: 'string' },
  peer: { type: 'string' },
  method: { type: 'string' },
  'dry-run': { type: 'boolean' },
  cancel: { type: 'boolean' },
  force: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

export const CLUSTER_TOOL: Tool = {
  usage: `Usage: troupe cluster status
       troupe cluster shards <collection>
       troupe cluster move <collection> <shard> --from <peer> --to <peer> [--method <name>]
       troupe cluster copy <collection> <shard> --from <peer> --to <peer> [--method <name>]
       troupe cluster drop <collection> <shard> --peer <peer> [--yes]
       troupe cluster rebalance [--dry-run]
       troupe cluster drain <peer> [--dry-run | --cancel]
       troupe cluster remove <peer> [--force] [--yes]

Shows the nodes of a cluster and where shards are; moves and copies replicas of shards; empties and removes nodes:

  troupe cluster drain 4211 --dry-run

Options:
  --from <peer>          the peer that has the replica
  --to <peer>            the peer that gets it
  --peer <peer>          the peer whose replica is dropped
  --method <name>        stream_records, snapshot or wal_delta
  --dry-run              only show the moves
  --cancel               stop draining the peer
  --force                remove a peer that holds shards: points that only it has are lost
  --yes                  drop or remove without a question

${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, OPTIONS);
    const [action = 'status', ...rest] = positionals;
    const asJson = values.json === true;
    return withNode(values, async (node) => {
      switch (action) {
        case 'status':
          argumentWords(action, rest);
          await status(node, out, asJson);
          return 0;
        case 'shards': {
          const [collection = ''] = argumentWords(action, rest, 'collection');
          const info = await node.result<ResultOf<'collection_cluster_info'>>('GET', apiPath`/collections/${collection}/cluster`);
          out(asJson ? jsonLine(info) : shardsText(info));
          return 0;
        }
        case 'move':
        case 'copy': {
          const [collection = '', shard = ''] = argumentWords(action, rest, 'collection', 'shard');
          const between = {
            shard_id: wholeNumber('<shard>', shard),
            from_peer_id: peerOf('--from', values.from),
            to_peer_id: peerOf('--to', values.to),
            ...(values.method === undefined ? {} : { method: values.method }),
          };
          await change(node, collection, action === 'move' ? { move_shard: between } : { replicate_shard: between });
          out(asJson ? jsonLine(true) : `begun; \`troupe cluster shards ${collection}\` shows how far it is\n`);
          return 0;
        }
        case 'drop': {
          const [collection = '', shard = ''] = argumentWords(action, rest, 'collection', 'shard');
          const peer = peerOf('--peer', values.peer);
          await confirm(`Drop the replica of shard ${shard} of ${collection} on peer ${peer}?`, values.yes === true);
          await change(node, collection, { drop_replica: { shard_id: wholeNumber('<shard>', shard), peer_id: peer } });
          out(asJson ? jsonLine(true) : 'dropped\n');
          return 0;
        }
        case 'rebalance': {
          argumentWords(action, rest);
          const plan = await node.result<Plan>('POST', `/cluster/rebalance?dry_run=${values['dry-run'] === true}`);
          out(asJson ? jsonLine(plan) : planText(plan));
          return 0;
        }
        case 'drain': {
          const [peer = ''] = argumentWords(action, rest, 'peer');
          if (values.cancel === true) {
            await node.result('DELETE', apiPath`/cluster/peer/${peer}/drain`);
            out(asJson ? jsonLine(true) : `peer ${peer} is not drained any more\n`);
            return 0;
          }
          const plan = await node.result<Plan>('POST', `${apiPath`/cluster/peer/${peer}/drain`}?dry_run=${values['dry-run'] === true}`);
          out(asJson ? jsonLine(plan) : planText(plan));
          return 0;
        }
        case 'remove': {
          const [peer = ''] = argumentWords(action, rest, 'peer');
          await confirm(
            `Remove peer ${peer} from the cluster${values.force === true ? ', with the points that only it has' : ''}?`,
            values.yes === true,
          );
          await node.result('DELETE', `${apiPath`/cluster/peer/${peer}`}?force=${values.force === true}`);
          out(asJson ? jsonLine(true) : `peer ${peer} is removed\n`);
          return 0;
        }
        default:
          throw wrongAction(action, 'status', 'shards', 'move', 'copy', 'drop', 'rebalance', 'drain', 'remove');
      }
    });
  },
};

function change(node: NodeConnection, collection: string, body: object): Promise<boolean> {
  return node.result('POST', apiPath`/collections/${collection}/cluster`, body);
}

function peerOf(option: string, text: string | undefined): number | bigint {
  if (text === undefined || !/^\d{1,20}$/.test(text))
    throw wrongArguments(`${option} names a peer by its number (\`troupe cluster status\`)`);
  const peer = BigInt(text);
  return peer <= Number.MAX_SAFE_INTEGER ? Number(peer) : peer;
}

async function status(node: NodeConnection, out: (text: string) => void, asJson: boolean): Promise<void> {
  const own = await node.result<ResultOf<'cluster_status'>>('GET', '/cluster');
  if (own.status !== 'enabled') {
    out(asJson ? jsonLine(own) : 'this node is no part of a cluster\n');
    return;
  }
  const nodes = await node.result<Nodes>('GET', '/cluster/telemetry');
  if (asJson) {
    out(jsonLine({ ...own, nodes }));
    return;
  }
  const leader = own.raft_info?.leader;
  const held = replicasByPeer(nodes);
  const rows = Object.entries(nodes.cluster.peers).map(([peer, { details, responsive, uri }]) => [
    peer,
    uri,
    responsive ? 'answers' : 'does not answer',
    peer === String(leader) ? 'leader' : (details?.role ?? '').toLowerCase(),
    details?.version ?? '',
    String(held.get(peer)?.all ?? 0),
    String(held.get(peer)?.bad ?? 0),
  ]);
  out(tableText(['peer', 'address', 'state', 'role', 'version', 'replicas', 'not Active'], rows));
  out(`asked: peer ${own.peer_id}, term ${own.raft_info?.term}, ${own.raft_info?.pending_operations} changes wait\n`);
  for (const [peer, { latest_error: error }] of Object.entries(own.message_send_failures ?? {}))
    out(`peer ${peer}: ${error ?? 'cannot be reached'}\n`);
}

function replicasByPeer({ collections }: Nodes): Map<string, { all: number; bad: number }> {
  const held = new Map<string, { all: number; bad: number }>();
  for (const { shards } of Object.values(collections)) {
    for (const { peer_id: peer, state } of (shards ?? []).flatMap(({ replicas }) => replicas)) {
      const counts = held.get(String(peer)) ?? { all: 0, bad: 0 };
      held.set(String(peer), { all: counts.all + 1, bad: counts.bad + (state === 'Active' ? 0 : 1) });
    }
  }
  return held;
}

function shardsText(info: ResultOf<'collection_cluster_info'>): string {
  const replicas = [
    ...info.local_shards.map((shard) => ({ ...shard, peer_id: info.peer_id, points: String(shard.points_count) })),
    ...info.remote_shards.map((shard) => ({ ...shard, points: '' })),
  ].sort((a, b) => a.shard_id - b.shard_id || (BigInt(a.peer_id) < BigInt(b.peer_id) ? -1 : 1));
  const hasKeys = replicas.some(({ shard_key: key }) => key != null);
  const text = tableText(
    ['shard', ...(hasKeys ? ['key'] : []), 'peer', 'state', 'points here'],
    replicas.map(({ peer_id: peer, points, shard_id: id, shard_key: key, state }) => [
      String(id),
      ...(hasKeys ? [String(key ?? '')] : []),
      String(peer),
      state,
      points,
    ]),
  );
  const transfers = info.shard_transfers.map(
    ({ comment, from, method, shard_id: id, to }) =>
      `shard ${id}: ${from} → ${to} by ${method ?? 'stream_records'}${comment == null ? '' : `: ${comment}`}\n`,
  );
  return text + transfers.join('');
}

function planText({ balance, moves, started, stuck }: Plan): string {
  if (moves.length === 0 && stuck.length === 0) return 'nothing is to be moved\n';
  const rows = moves.map(({ bytes, collection, from_peer_id: from, shard_id: id, to_peer_id: to }) => [
    collection,
    String(id),
    from == null ? 'a copy' : String(from),
    to == null ? 'dropped' : String(to),
    bytesText(bytes),
  ]);
  const peers = Object.keys({ ...balance.before, ...balance.after });
  const loadOf = (load: { replicas: number; bytes: number } | undefined): string =>
    load === undefined ? '' : `${load.replicas} replicas, ${bytesText(load.bytes)}`;
  return [
    tableText(['collection', 'shard', 'from', 'to', 'size'], rows),
    '\n',
    tableText(
      ['peer', 'before', 'after'],
      peers.map((peer) => [peer, loadOf(balance.before[peer]), loadOf(balance.after[peer])]),
    ),
    ...stuck.map(({ collection, reason, shard_id: id }) => `shard ${id} of ${collection} cannot be moved: ${reason}\n`),
    started ? '\nbegun; `troupe cluster status` shows how far it is\n' : '\nnothing was done yet: this is what it would do\n',
  ].join('');
}
