/** Shards on their way, in the whole cluster: how far each is, how fast, and what the others wait for. */

import { type ReactNode, useState } from 'react';
import { call, collectionPath } from '../base/api.js';
import { useLive } from '../base/live.js';
import { linkTo } from '../base/router.js';
import type { CollectionCluster, ShownCluster, Telemetry, TransferReports } from '../model/api-types.js';
import { peerNames } from '../model/cluster-map.js';
import { peerFailure } from '../model/findings.js';
import { count, seconds } from '../model/format.js';
import { type TransferRow, transferRows } from '../model/transfers.js';
import { ActDialog, Bar, Failure, Loading, State, Tile } from '../parts/basics.js';

const OPTIONS = { periodMs: 2000, followed: { topics: ['transfers', 'replicas'] }, followedPeriodMs: 4000 };
/** More would be many requests each time. */
const COLLECTIONS_MAX = 100;
const NONE: TransferReports = { running: [], ended: [], migrations: [] };

interface Loaded {
  readonly status: ShownCluster;
  readonly rows: readonly TransferRow[];
  readonly reports: TransferReports;
  readonly looked: number;
  readonly total: number;
}

export function TransfersPage(): ReactNode {
  const { value, error, reload } = useLive('transfers', load, OPTIONS);
  const [aborted, setAborted] = useState<TransferRow | null>(null);
  if (value === undefined) return error === null ? <Loading /> : <Failure error={error} />;
  const { looked, reports, rows, status, total } = value;
  const names = peerNames(status.peers ?? {});
  const nameOf = (peerId: number): string => names.get(peerId) ?? `peer ${peerId}`;
  return (
    <>
      <div className="head">
        <h1>Transfers</h1>
      </div>
      <Failure error={error} />
      {status.status === 'disabled' && <p className="sheet">This node is on its own: its shards have nowhere to go.</p>}
      {status.status === 'enabled' && (
        <>
          <div className="tiles">
            <Tile title="under way">{count(rows.filter(({ from }) => from !== null).length)}</Tile>
            <Tile title="replicas that wait">{count(rows.filter(({ from }) => from === null).length)}</Tile>
            <Tile title="ended, of those that this node ran">{count(reports.ended.length)}</Tile>
          </div>
          <Rows rows={rows} nameOf={nameOf} onAbort={setAborted} />
          {total > looked && <p className="faint">{`The first ${looked} of ${count(total)} collections were looked at.`}</p>}
          <Migrations reports={reports} />
          <Ended reports={reports} nameOf={nameOf} />
        </>
      )}
      {aborted !== null && (
        <ActDialog
          title={`Give up the transfer of shard ${aborted.shardId} of ${aborted.collection}?`}
          action="Give it up"
          danger
          onAct={async () => {
            await call('POST', collectionPath(aborted.collection, '/cluster'), aborted.abort);
            reload();
          }}
          onClose={() => setAborted(null)}
        >
          <p>What was sent so far is dropped. A replica that was Dead before is filled again later; a move does not take place.</p>
        </ActDialog>
      )}
    </>
  );
}

interface RowsProps {
  readonly rows: readonly TransferRow[];
  readonly nameOf: (peerId: number) => string;
  readonly onAbort: (row: TransferRow) => void;
}

function Rows({ rows, nameOf, onAbort }: RowsProps): ReactNode {
  if (rows.length === 0) return <p className="sheet">No shard is on its way, and no replica waits for one.</p>;
  return (
    <div className="sheet scroll">
      <table>
        <thead>
          <tr>
            <th>Collection</th>
            <th>Shard</th>
            <th>From</th>
            <th>To</th>
            <th>How far it is</th>
            <th>
              <span className="unseen">What to do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.collection} ${row.shardId} ${row.from} ${row.to}`}>
              <td>
                <a href={linkTo('collections', row.collection, 'replicas')}>{row.collection}</a>
              </td>
              <td>{row.shardId}</td>
              <td>{row.from === null ? '' : nameOf(row.from)}</td>
              <td>{nameOf(row.to)}</td>
              <td>
                <State tone={row.from === null ? 'wait' : 'busy'}>{row.from === null ? 'waits' : (row.method ?? 'under way')}</State>
                <div className="small payload">{row.sentence}</div>
                {row.share !== null && <Bar share={row.share} label={`Shard ${row.shardId} of ${row.collection}`} />}
              </td>
              <td>
                {row.abort !== null && (
                  <button type="button" className="danger" onClick={() => onAbort(row)}>
                    Give up
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Points that go to other shards, as far as this node sends them. */
function Migrations({ reports: { migrations } }: { readonly reports: TransferReports }): ReactNode {
  if (migrations.length === 0) return null;
  return (
    <div className="sheet">
      <h2>Points that go to other shards</h2>
      {migrations.map(({ collection, points_sent = 0, points_total = 0, shard_id, stage = 'waiting' }) => (
        <div key={`${collection} ${shard_id}`}>
          {`Shard ${shard_id} of ${collection}: ${stage}${points_total > 0 ? `, ${count(points_sent)} of ${count(points_total)} points` : ''}`}
        </div>
      ))}
    </div>
  );
}

function Ended({
  nameOf,
  reports: { ended },
}: {
  readonly nameOf: (peerId: number) => string;
  readonly reports: TransferReports;
}): ReactNode {
  if (ended.length === 0) return null;
  return (
    <div className="sheet scroll">
      <h2>The last ones that this node ran</h2>
      <table>
        <thead>
          <tr>
            <th>Ended</th>
            <th>Collection</th>
            <th>Shard</th>
            <th>From</th>
            <th>To</th>
            <th>Outcome</th>
            <th className="number">Took</th>
          </tr>
        </thead>
        <tbody>
          {[...ended].reverse().map((one) => (
            <tr key={`${one.ended} ${one.collection} ${one.shard_id} ${one.to}`}>
              <td className="mono">{one.ended?.slice(0, 19).replace('T', ' ')}</td>
              <td>{one.collection}</td>
              <td>{one.shard_id}</td>
              <td>{nameOf(one.from)}</td>
              <td>{nameOf(one.to)}</td>
              <td>
                <State tone={one.outcome === 'finished' ? 'good' : 'wait'}>{one.outcome}</State>
                {one.cause != null && <div className="small payload">{one.cause}</div>}
              </td>
              <td className="number">{seconds(one.seconds ?? 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

async function load(signal: AbortSignal): Promise<Loaded> {
  const [status, { collections }, telemetry] = await Promise.all([
    call<ShownCluster>('GET', '/cluster', undefined, signal),
    call<{ collections: readonly { name: string }[] }>('GET', '/collections', undefined, signal),
    call<Telemetry>('GET', '/telemetry', undefined, signal),
  ]);
  const looked = status.status === 'disabled' ? [] : collections.slice(0, COLLECTIONS_MAX);
  const clusters = await Promise.all(
    looked.map(async ({ name }) => {
      try {
        return { name, cluster: await call<CollectionCluster>('GET', collectionPath(name, '/cluster'), undefined, signal) };
      } catch (error) {
        if (signal.aborted) throw error;
        return null;
      }
    }),
  );
  const reports = telemetry.app.transfers ?? NONE;
  const rows = transferRows({
    collections: clusters.filter((one) => one !== null),
    running: reports.running,
    failureOf: (peerId) => peerFailure(status, peerId),
  });
  return { status, rows, reports, looked: looked.length, total: collections.length };
}
