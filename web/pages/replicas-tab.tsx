/** Which node has which replica of a collection; a replica is moved by dragging it, or by its menu. */

import { type ReactNode, useState } from 'react';
import { call, collectionPath } from '../base/api.js';
import { useResult } from '../base/live.js';
import type { CollectionCluster, ShownCluster } from '../model/api-types.js';
import { type MapReplica, moveRefusal, peerNames, type ShardRow, shardRows } from '../model/cluster-map.js';
import { replicaSentences } from '../model/findings.js';
import { count } from '../model/format.js';
import { ActDialog, Failure } from '../parts/basics.js';
import { toneOf } from '../parts/states.js';

const PERIOD_MS = 2000;
const METHODS = ['stream_records', 'snapshot', 'wal_delta'];

interface Props {
  readonly name: string;
  readonly cluster: CollectionCluster;
  readonly reload: () => void;
}

interface Move {
  readonly replica: MapReplica;
  readonly toPeerId: number;
}

export function ReplicasTab({ name, cluster, reload }: Props): ReactNode {
  const { value: status, error } = useResult<ShownCluster>('/cluster', { periodMs: PERIOD_MS });
  const [dragged, setDragged] = useState<{ readonly row: ShardRow; readonly replica: MapReplica } | null>(null);
  const [move, setMove] = useState<Move | null>(null);
  const peers = status?.peers ?? { [cluster.peer_id]: { uri: 'this node' } };
  const names = peerNames(peers);
  const ids = [...names.keys()];
  return (
    <>
      <Failure error={error} />
      <div className="sheet scroll">
        <table className="map">
          <thead>
            <tr>
              <th>Shard</th>
              {ids.map((id) => (
                <th key={id}>
                  {names.get(id)}
                  <div className="small faint">{peers[id]?.uri}</div>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shardRows(cluster).map((row) => (
              <tr key={row.shardId}>
                <td>{row.shardKey === null ? row.shardId : `${row.shardId} (${row.shardKey})`}</td>
                {ids.map((id) => {
                  const canDrop = dragged !== null && dragged.row.shardId === row.shardId && moveRefusal(row, dragged.replica, id) === null;
                  return (
                    <td
                      key={id}
                      className={canDrop ? 'target' : ''}
                      onDragOver={(event) => canDrop && event.preventDefault()}
                      onDrop={() => canDrop && setMove({ replica: (dragged as { replica: MapReplica }).replica, toPeerId: id })}
                    >
                      {row.replicas
                        .filter(({ peerId }) => peerId === id)
                        .map((replica) => (
                          // biome-ignore lint/a11y/noStaticElementInteractions: the menu within does the same by keyboard
                          <span
                            key={replica.peerId}
                            className={`chip ${toneOf(replica.state)}`}
                            draggable={ids.length > 1}
                            onDragStart={() => setDragged({ row, replica })}
                            onDragEnd={() => setDragged(null)}
                          >
                            {replica.state}
                            {replica.points !== null && <small className="faint">{`${count(replica.points)} points`}</small>}
                            {ids.length > 1 && <MoveMenu row={row} replica={replica} names={names} onMove={setMove} />}
                          </span>
                        ))}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {replicaSentences(cluster, status).map(({ sentence, tone }) => (
        <p key={sentence} className={tone}>
          {sentence}
        </p>
      ))}
      <h2>Transfers</h2>
      {cluster.shard_transfers.length === 0 && <p className="faint">No shard is on its way.</p>}
      {cluster.shard_transfers.map((transfer) => (
        <div key={`${transfer.shard_id} ${transfer.to}`} className="sheet">
          {`Shard ${transfer.shard_id} from ${names.get(transfer.from) ?? transfer.from} to ${names.get(transfer.to) ?? transfer.to}`}
          {transfer.method !== undefined && `, by ${transfer.method}`}
          {transfer.comment !== undefined && <div className="small faint">{transfer.comment}</div>}
        </div>
      ))}
      {move !== null && <MoveDialog name={name} move={move} names={names} onClose={() => setMove(null)} onDone={reload} />}
    </>
  );
}

interface MenuProps {
  readonly row: ShardRow;
  readonly replica: MapReplica;
  readonly names: ReadonlyMap<number, string>;
  readonly onMove: (move: Move) => void;
}

function MoveMenu({ row, replica, names, onMove }: MenuProps): ReactNode {
  const targets = [...names].filter(([id]) => moveRefusal(row, replica, id) === null);
  if (targets.length === 0) return null;
  return (
    <select
      aria-label={`Move the replica of shard ${row.shardId} on ${names.get(replica.peerId)}`}
      value=""
      onChange={(event) => onMove({ replica, toPeerId: Number(event.target.value) })}
    >
      <option value="" disabled>
        move …
      </option>
      {targets.map(([id, title]) => (
        <option key={id} value={id}>
          {`to ${title}`}
        </option>
      ))}
    </select>
  );
}

interface MoveDialogProps {
  readonly name: string;
  readonly move: Move;
  readonly names: ReadonlyMap<number, string>;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows what will be asked for before it is. */
function MoveDialog({ name, move: { replica, toPeerId }, names, onClose, onDone }: MoveDialogProps): ReactNode {
  const [method, setMethod] = useState(METHODS[0] as string);
  const [copies, setCopies] = useState(false);
  const operation = copies ? 'replicate_shard' : 'move_shard';
  const body = { [operation]: { shard_id: replica.shardId, from_peer_id: replica.peerId, to_peer_id: toPeerId, method } };
  const act = async (): Promise<void> => {
    await call('POST', collectionPath(name, '/cluster'), body);
    onDone();
  };
  return (
    <ActDialog
      title={`Shard ${replica.shardId}: from ${names.get(replica.peerId)} to ${names.get(toPeerId)}`}
      action={copies ? 'Copy' : 'Move'}
      onAct={act}
      onClose={onClose}
    >
      <p className="small">
        {`Reads and writes go on meanwhile.${replica.points === null ? '' : ` ${count(replica.points)} points are sent.`} ${copies ? 'Both nodes have the shard afterwards.' : 'When the new replica is Active, the old one goes.'}`}
      </p>
      <label>
        Method
        <select value={method} onChange={(event) => setMethod(event.target.value)}>
          {METHODS.map((word) => (
            <option key={word}>{word}</option>
          ))}
        </select>
      </label>
      <label className="line">
        <input type="checkbox" checked={copies} onChange={(event) => setCopies(event.target.checked)} />
        Keep the replica where it is, and make a copy
      </label>
      <pre>{`POST ${collectionPath(name, '/cluster')}\n${JSON.stringify(body, null, 2)}`}</pre>
    </ActDialog>
  );
}
