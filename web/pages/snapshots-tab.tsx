/** Snapshots of a collection: make, download, upload, restore, delete. */

import { type ReactNode, useRef, useState } from 'react';
import { ApiError, call, collectionPath, headers, messageOf, send } from '../base/api.js';
import { useResult } from '../base/live.js';
import type { ShownSnapshot } from '../model/api-types.js';
import { bytes } from '../model/format.js';
import { ActDialog, Failure, Loading } from '../parts/basics.js';

const PERIOD_MS = 5000;
const PRIORITIES = ['snapshot', 'replica', 'no_sync'];

export function SnapshotsTab({ name }: { readonly name: string }): ReactNode {
  const path = collectionPath(name, '/snapshots');
  const { value, error, reload } = useResult<readonly ShownSnapshot[]>(path, { periodMs: PERIOD_MS });
  const [work, setWork] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [restored, setRestored] = useState<ShownSnapshot | null>(null);
  const [deleted, setDeleted] = useState<ShownSnapshot | null>(null);
  const file = useRef<HTMLInputElement>(null);
  const act = async (title: string, run: () => Promise<void>): Promise<void> => {
    setWork(title);
    setFailure(null);
    try {
      await run();
      reload();
    } catch (met) {
      setFailure(met);
    } finally {
      setWork(null);
    }
  };
  const upload = (chosen: File): Promise<void> =>
    act(`Uploading ${chosen.name} …`, async () => {
      const form = new FormData();
      form.append('snapshot', chosen);
      const { status, text } = await send('POST', `${path}/upload?priority=snapshot&wait=true`, form);
      if (status >= 400) throw new ApiError(status, text);
    });
  return (
    <>
      <div className="row" style={{ marginBottom: '1rem' }}>
        <button
          type="button"
          className="main-action"
          disabled={work !== null}
          onClick={() => act('Making a snapshot …', async () => void (await call('POST', path)))}
        >
          Make a snapshot
        </button>
        <button type="button" disabled={work !== null} onClick={() => file.current?.click()}>
          Upload and restore
        </button>
        <input
          ref={file}
          type="file"
          hidden
          onChange={(event) => {
            const chosen = event.target.files?.[0];
            if (chosen) void upload(chosen);
            event.target.value = '';
          }}
        />
        {work !== null && (
          <span role="status" className="faint">
            {work}
          </span>
        )}
      </div>
      <Failure error={failure ?? error} />
      {value === undefined && error === null && <Loading />}
      {value?.length === 0 && <p>There are no snapshots of this collection on this node.</p>}
      {value !== undefined && value.length > 0 && (
        <div className="sheet scroll">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Made</th>
                <th className="number">Size</th>
                <th>SHA-256</th>
                <th>What to do</th>
              </tr>
            </thead>
            <tbody>
              {value.map((snapshot) => (
                <tr key={snapshot.name}>
                  <td className="mono">{snapshot.name}</td>
                  <td>{snapshot.creation_time ?? ''}</td>
                  <td className="number">{bytes(snapshot.size)}</td>
                  <td className="mono" title={snapshot.checksum ?? ''}>
                    {snapshot.checksum?.slice(0, 12) ?? 'unknown'}
                  </td>
                  <td>
                    <div className="row">
                      <button
                        type="button"
                        onClick={() => act('Downloading …', () => download(`${path}/${encodeURIComponent(snapshot.name)}`, snapshot.name))}
                      >
                        Download
                      </button>
                      <button type="button" onClick={() => setRestored(snapshot)}>
                        Restore
                      </button>
                      <button type="button" className="danger" onClick={() => setDeleted(snapshot)}>
                        Delete
                      </button>
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {restored !== null && <RestoreDialog name={name} snapshot={restored} onClose={() => setRestored(null)} onDone={reload} />}
      {deleted !== null && (
        <ActDialog
          title="Delete the snapshot?"
          action="Delete"
          danger
          onAct={async () => {
            await call('DELETE', `${path}/${encodeURIComponent(deleted.name)}`);
            reload();
          }}
          onClose={() => setDeleted(null)}
        >
          <p className="mono">{deleted.name}</p>
        </ActDialog>
      )}
    </>
  );
}

/** Through a request of its own, since a link could carry the key only in its address. */
async function download(path: string, name: string): Promise<void> {
  const response = await fetch(path, { headers: headers() });
  if (!response.ok) throw new ApiError(response.status, await response.text());
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

interface RestoreProps {
  readonly name: string;
  readonly snapshot: ShownSnapshot;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function RestoreDialog({ name, snapshot, onClose, onDone }: RestoreProps): ReactNode {
  const [target, setTarget] = useState(name);
  const [priority, setPriority] = useState(PRIORITIES[0] as string);
  const restore = async (): Promise<void> => {
    const location = `${window.location.origin}${collectionPath(name, `/snapshots/${encodeURIComponent(snapshot.name)}`)}`;
    const key = headers()['api-key'];
    const body = {
      location,
      priority,
      ...(snapshot.checksum === null ? {} : { checksum: snapshot.checksum }),
      ...(key === undefined ? {} : { api_key: key }),
    };
    try {
      await call('PUT', collectionPath(target, '/snapshots/recover?wait=true'), body);
    } catch (error) {
      throw new Error(`It was not restored: ${messageOf(error)}`);
    }
    onDone();
  };
  return (
    <ActDialog title="Restore the snapshot" action="Restore" danger={target === name} onAct={restore} onClose={onClose}>
      <p className="mono">{snapshot.name}</p>
      <label>
        Into the collection
        <input required value={target} onChange={(event) => setTarget(event.target.value)} />
      </label>
      <label>
        Priority
        <select value={priority} onChange={(event) => setPriority(event.target.value)}>
          {PRIORITIES.map((word) => (
            <option key={word}>{word}</option>
          ))}
        </select>
      </label>
      {target === name && <p className="bad">What the collection has now is replaced by what the snapshot has.</p>}
    </ActDialog>
  );
}
