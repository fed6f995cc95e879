/** The nodes of the cluster: who leads, who cannot be reached, which collections are where; drain and rebalance with a look at the plan first. */

import { type ReactNode, useState } from 'react';
import { call, collectionPath } from '../base/api.js';
import { useLive } from '../base/live.js';
import { linkTo } from '../base/router.js';
import type { CollectionCluster, ShownCluster } from '../model/api-types.js';
import { type MapReplica, peerNames, replicasOf } from '../model/cluster-map.js';
import { peerFailure, replicaSentences } from '../model/findings.js';
import { count } from '../model/format.js';
import { ActDialog, Failure, Loading, State, Tile } from '../parts/basics.js';
import { toneOf } from '../parts/states.js';

/** Who can be reached is not told of. */
const OPTIONS = { periodMs: 2000, followed: { topics: ['collections', 'replicas', 'transfers'] }, followedPeriodMs: 4000 };
const COLLECTIONS_MAX = 50;

interface Loaded {
  readonly status: ShownCluster;
  readonly collections: readonly { readonly name: string; readonly cluster: CollectionCluster }[];
  readonly total: number;
}

export function ClusterPage(): ReactNode {
  const { value, error, reload } = useLive('cluster', load, OPTIONS);
  const [plan, setPlan] = useState<{ readonly title: string; readonly path: string } | null>(null);
  if (value === undefined) return error === null ? <Loading /> : <Failure error={error} />;
  const { status, collections, total } = value;
  if (status.status === 'disabled')
    return (
      <>
        <div className="head">
          <h1>Cluster</h1>
        </div>
        <div className="sheet">
          <h2>This node is on its own</h2>
          <p>To try a cluster of three nodes on this machine, run this in the folder of Troupe:</p>
          <pre>npm run cluster -- --nodes 3</pre>
        </div>
      </>
    );
  const names = peerNames(status.peers ?? {});
  const raft = status.raft_info;
  return (
    <>
      <div className="head">
        <h1>Cluster</h1>
        <span className="grow" />
        <button type="button" onClick={() => setPlan({ title: 'Rebalance the cluster', path: '/cluster/rebalance' })}>
          Rebalance
        </button>
      </div>
      <Failure error={error} />
      <div className="tiles">
        <Tile title="nodes">{count(names.size)}</Tile>
        <Tile title="leader">{raft?.leader ? (names.get(raft.leader) ?? String(raft.leader)) : 'none'}</Tile>
        <Tile title="term">{count(raft?.term ?? 0)}</Tile>
        <Tile title="entries agreed on">{count(raft?.commit ?? 0)}</Tile>
      </div>
      <div className="sheet scroll">
        <table className="map">
          <thead>
            <tr>
              <th>Collection</th>
              {[...names].map(([id, title]) => (
                <th key={id}>
                  <PeerHead
                    id={id}
                    title={title}
                    status={status}
                    onDrain={() =>
                      setPlan({ title: `Move everything away from ${title} and remove it`, path: `/cluster/peer/${id}/drain` })
                    }
                  />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {collections.map(({ name, cluster }) => (
              <tr key={name}>
                <td>
                  <a href={linkTo('collections', name, 'replicas')}>{name}</a>
                  {cluster.shard_transfers.length > 0 && (
                    <a
                      className="small busy"
                      style={{ display: 'block' }}
                      href={linkTo('transfers')}
                    >{`${cluster.shard_transfers.length} transfers`}</a>
                  )}
                  {replicaSentences(cluster, status).map(({ sentence, tone }) => (
                    <div key={sentence} className={`small ${tone}`}>
                      {sentence}
                    </div>
                  ))}
                </td>
                {[...names.keys()].map((id) => (
                  <td key={id}>
                    {replicasOf(cluster)
                      .filter(({ peerId }) => peerId === id)
                      .map((replica) => (
                        <ReplicaChip key={replica.shardId} replica={replica} />
                      ))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > collections.length && <p className="faint">{`${collections.length} of ${count(total)} collections are shown.`}</p>}
      <p className="small faint">Open a collection to move one of its replicas.</p>
      {plan !== null && <PlanDialog title={plan.title} path={plan.path} names={names} onClose={() => setPlan(null)} onDone={reload} />}
    </>
  );
}

async function load(signal: AbortSignal): Promise<Loaded> {
  const [status, { collections }] = await Promise.all([
    call<ShownCluster>('GET', '/cluster', undefined, signal),
    call<{ collections: readonly { name: string }[] }>('GET', '/collections', undefined, signal),
  ]);
  const shown = status.status === 'disabled' ? [] : collections.slice(0, COLLECTIONS_MAX);
  const clusters = await Promise.all(
    shown.map(async ({ name }) => {
      try {
        return { name, cluster: await call<CollectionCluster>('GET', collectionPath(name, '/cluster'), undefined, signal) };
      } catch (error) {
        if (signal.aborted) throw error;
        return null;
      }
    }),
  );
  return { status, collections: clusters.filter((one) => one !== null), total: collections.length };
}

interface PeerProps {
  readonly id: number;
  readonly title: string;
  readonly status: ShownCluster;
  readonly onDrain: () => void;
}

function PeerHead({ id, title, status, onDrain }: PeerProps): ReactNode {
  const failure = peerFailure(status, id);
  const isOwn = status.peer_id === id;
  return (
    <>
      <State tone={failure === null ? 'good' : 'bad'}>{`${title}${isOwn ? ' (asked)' : ''}`}</State>
      <div className="small">{status.peers?.[id]?.uri}</div>
      <div className="small mono">{id}</div>
      {status.raft_info?.leader === id && <span className="tag">leads</span>}
      {failure !== null && <div className="small bad">{failure}</div>}
      <button type="button" className="plain" onClick={onDrain}>
        Drain
      </button>
    </>
  );
}

function ReplicaChip({ replica }: { readonly replica: MapReplica }): ReactNode {
  return <span className={`chip ${toneOf(replica.state)}`}>{`${replica.shardId} ${replica.state}`}</span>;
}

interface Plan {
  readonly moves?: readonly { readonly collection?: string; readonly shard_id?: number; readonly from?: number; readonly to?: number }[];
}

interface PlanProps {
  readonly title: string;
  readonly path: string;
  readonly names: ReadonlyMap<number, string>;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows what would be moved, and does it only then. */
function PlanDialog({ title, path, names, onClose, onDone }: PlanProps): ReactNode {
  const { value, error } = useLive(path, (signal) => call<Plan>('POST', `${path}?dry_run=true`, undefined, signal), { periodMs: 0 });
  const moves = value?.moves ?? [];
  return (
    <ActDialog
      title={title}
      action="Do it"
      disabled={value === undefined}
      onAct={async () => {
        await call('POST', path);
        onDone();
      }}
      onClose={onClose}
    >
      <Failure error={error} />
      {value !== undefined && <p>{moves.length === 0 ? 'Nothing has to be moved.' : `${count(moves.length)} replicas are moved:`}</p>}
      {value !== undefined && (
        <pre>{moves.length === 0 ? JSON.stringify(value, null, 2) : moves.map((move) => describeMove(move, names)).join('\n')}</pre>
      )}
    </ActDialog>
  );
}

function describeMove(move: Readonly<Record<string, unknown>>, names: ReadonlyMap<number, string>): string {
  return Object.entries(move)
    .map(([key, value]) => `${key}: ${typeof value === 'number' ? (names.get(value) ?? value) : String(value)}`)
    .join(', ');
}
