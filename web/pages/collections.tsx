/** All collections: how each is and why, what it holds; create and delete. */

import { type ReactNode, useState } from 'react';
import { call, collectionPath } from '../base/api.js';
import { useLive } from '../base/live.js';
import { linkTo } from '../base/router.js';
import type { CollectionCluster, CollectionInfo, Optimizations } from '../model/api-types.js';
import { conditionOf } from '../model/condition.js';
import { count, percent } from '../model/format.js';
import { describeVector, vectorNames } from '../model/vectors.js';
import { ActDialog, Failure, Loading, State } from '../parts/basics.js';

/** More would be many requests every few seconds; the field above the table finds the others. */
const SHOWN_MAX = 50;
const OPTIONS = { periodMs: 3000, followed: { topics: ['collections', 'replicas', 'transfers', 'optimizations'] } };

interface Row {
  readonly name: string;
  readonly info: CollectionInfo;
  readonly cluster: CollectionCluster;
  readonly optimizations: Optimizations | undefined;
}

interface Loaded {
  readonly names: readonly string[];
  readonly rows: readonly Row[];
  readonly aliases: readonly { readonly alias_name: string; readonly collection_name: string }[];
}

export function CollectionsPage(): ReactNode {
  const [wanted, setWanted] = useState('');
  const { value, error, reload } = useLive(`collections ${wanted}`, (signal) => load(wanted, signal), OPTIONS);
  const [creates, setCreates] = useState(false);
  const [deletes, setDeletes] = useState<string | null>(null);
  return (
    <>
      <div className="head">
        <h1>Collections</h1>
        <span className="grow" />
        <input
          type="search"
          aria-label="Find a collection"
          placeholder="Find a collection"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
        <button type="button" className="main-action" onClick={() => setCreates(true)}>
          Create a collection
        </button>
      </div>
      <Failure error={error} />
      {value === undefined && error === null ? <Loading /> : null}
      {value !== undefined && (
        <>
          {value.names.length === 0 ? <NoCollections wanted={wanted} /> : <Table loaded={value} onDelete={setDeletes} />}
          {value.names.length > value.rows.length && (
            <p className="faint">{`${count(value.rows.length)} of ${count(value.names.length)} collections are shown. Type a part of a name to find others.`}</p>
          )}
        </>
      )}
      {creates && <CreateDialog onClose={() => setCreates(false)} onCreated={reload} />}
      {deletes !== null && <DeleteDialog name={deletes} onClose={() => setDeletes(null)} onDeleted={reload} />}
    </>
  );
}

async function load(wanted: string, signal: AbortSignal): Promise<Loaded> {
  const [{ collections }, { aliases }] = await Promise.all([
    call<{ collections: readonly { name: string }[] }>('GET', '/collections', undefined, signal),
    call<{ aliases: Loaded['aliases'] }>('GET', '/aliases', undefined, signal),
  ]);
  const names = collections
    .map(({ name }) => name)
    .filter((name) => name.toLowerCase().includes(wanted.toLowerCase()))
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  const rows = await Promise.all(names.slice(0, SHOWN_MAX).map((name) => loadRow(name, signal)));
  // A collection may be deleted between the list and the question about it.
  return { names, rows: rows.filter((row) => row !== null), aliases };
}

async function loadRow(name: string, signal: AbortSignal): Promise<Row | null> {
  try {
    const [info, cluster] = await Promise.all([
      call<CollectionInfo>('GET', collectionPath(name), undefined, signal),
      call<CollectionCluster>('GET', collectionPath(name, '/cluster'), undefined, signal),
    ]);
    const optimizations =
      info.status === 'yellow' ? await call<Optimizations>('GET', collectionPath(name, '/optimizations'), undefined, signal) : undefined;
    return { name, info, cluster, optimizations };
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}

function NoCollections({ wanted }: { readonly wanted: string }): ReactNode {
  if (wanted !== '') return <p>No collection has that in its name.</p>;
  return (
    <div className="sheet">
      <h2>There are no collections yet</h2>
      <p>Create one here, or paste this into a terminal:</p>
      <pre>{`curl -X PUT ${location.origin}/collections/cities -d '{"vectors": {"size": 4, "distance": "Cosine"}}'`}</pre>
    </div>
  );
}

function Table({ loaded, onDelete }: { readonly loaded: Loaded; readonly onDelete: (name: string) => void }): ReactNode {
  return (
    <div className="sheet scroll">
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th className="number">Points</th>
            <th className="number">Indexed</th>
            <th>Vectors</th>
            <th className="number">Segments</th>
            <th className="number">Shards</th>
            <th>
              <span className="unseen">Delete</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {loaded.rows.map(({ name, info, cluster, optimizations }) => {
            const { tone, sentence } = conditionOf(info, cluster, optimizations);
            const points = info.points_count ?? 0;
            const vectors = vectorNames(info);
            const aliases = loaded.aliases.filter(({ collection_name }) => collection_name === name);
            return (
              <tr key={name}>
                <td className="long">
                  <a href={linkTo('collections', name)}>{name}</a>
                  {aliases.map(({ alias_name }) => (
                    <div key={alias_name} className="small faint">{`alias ${alias_name}`}</div>
                  ))}
                </td>
                <td className="long">
                  <State tone={tone}>{info.status}</State>
                  <div className="small">{sentence}</div>
                </td>
                <td className="number">{count(points)}</td>
                <td className="number">{percent(info.indexed_vectors_count ?? 0, points * Math.max(1, vectors.length))}</td>
                <td>
                  {vectors.map((vector) => (
                    <div key={vector.name} className="small">
                      {describeVector(vector)}
                    </div>
                  ))}
                </td>
                <td className="number">{count(info.segments_count)}</td>
                <td className="number">{count(cluster.shard_count)}</td>
                <td>
                  <button type="button" className="danger" onClick={() => onDelete(name)} aria-label={`Delete ${name}`}>
                    Delete
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const DISTANCES = ['Cosine', 'Dot', 'Euclid', 'Manhattan'];

function CreateDialog({ onClose, onCreated }: { readonly onClose: () => void; readonly onCreated: () => void }): ReactNode {
  const [name, setName] = useState('');
  const [size, setSize] = useState('384');
  const [distance, setDistance] = useState('Cosine');
  const [shards, setShards] = useState('');
  const [copies, setCopies] = useState('');
  const create = async (): Promise<void> => {
    const body: Record<string, unknown> = { vectors: { size: Number(size), distance } };
    if (shards !== '') body.shard_number = Number(shards);
    if (copies !== '') body.replication_factor = Number(copies);
    await call('PUT', collectionPath(name), body);
    onCreated();
  };
  return (
    <ActDialog title="Create a collection" action="Create" onAct={create} onClose={onClose}>
      <label>
        Name
        <input required value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <div className="row">
        <label className="grow">
          Numbers in a vector
          <input required type="number" min="1" value={size} onChange={(event) => setSize(event.target.value)} />
        </label>
        <label className="grow">
          Distance
          <select value={distance} onChange={(event) => setDistance(event.target.value)}>
            {DISTANCES.map((word) => (
              <option key={word}>{word}</option>
            ))}
          </select>
        </label>
      </div>
      <div className="row">
        <label className="grow">
          Shards (empty: one for each node)
          <input type="number" min="1" value={shards} onChange={(event) => setShards(event.target.value)} />
        </label>
        <label className="grow">
          Copies of each shard (empty: 1)
          <input type="number" min="1" value={copies} onChange={(event) => setCopies(event.target.value)} />
        </label>
      </div>
      <p className="small faint">
        For named, sparse and several vectors, quantization and everything else, use the <a href={linkTo('console')}>console</a>.
      </p>
    </ActDialog>
  );
}

function DeleteDialog({
  name,
  onClose,
  onDeleted,
}: {
  readonly name: string;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}): ReactNode {
  const [typed, setTyped] = useState('');
  const remove = async (): Promise<void> => {
    await call('DELETE', collectionPath(name));
    onDeleted();
  };
  return (
    <ActDialog title={`Delete ${name}?`} action="Delete" danger disabled={typed !== name} onAct={remove} onClose={onClose}>
      <p>All its points are deleted. This cannot be undone.</p>
      <label>
        Type the collection&apos;s name
        <input value={typed} onChange={(event) => setTyped(event.target.value)} />
      </label>
    </ActDialog>
  );
}
