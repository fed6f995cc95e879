/** Snapshots of one place: make, download, delete, and what else can be done there. */

import { type ReactNode, useState } from 'react';
import { ApiError, call, headers } from '../base/api.js';
import { useResult } from '../base/live.js';
import type { ShownSnapshot } from '../model/api-types.js';
import { bytes, moment } from '../model/format.js';
import { ActDialog, Failure, Loading } from './basics.js';

const PERIOD_MS = 5000;

interface Props {
  /** `/snapshots` of it. */
  readonly path: string;
  /** What to say when there are none. */
  readonly none: string;
  /** Restores one; absent: that is not done here. */
  readonly onRestore?: (snapshot: ShownSnapshot, reload: () => void) => void;
  /** Beside the button that makes one. */
  readonly extra?: (act: Act, isBusy: boolean) => ReactNode;
}

/** Runs what takes a while, with its title shown, and shows what it throws. */
export type Act = (title: string, run: () => Promise<void>) => Promise<void>;

export function SnapshotList({ extra, none, onRestore, path }: Props): ReactNode {
  const { value, error, reload } = useResult<readonly ShownSnapshot[]>(path, { periodMs: PERIOD_MS });
  const [work, setWork] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [deleted, setDeleted] = useState<ShownSnapshot | null>(null);
  const act: Act = async (title, run) => {
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
        {extra?.(act, work !== null)}
        {work !== null && (
          <span role="status" className="faint">
            {work}
          </span>
        )}
      </div>
      <Failure error={failure ?? error} />
      {value === undefined && error === null && <Loading />}
      {value?.length === 0 && <p>{none}</p>}
      {value !== undefined && value.length > 0 && (
        <div className="sheet scroll">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Made</th>
                <th className="number">Size</th>
                <th>SHA-256</th>
                <th>
                  <span className="unseen">What to do</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {value.map((snapshot) => (
                <tr key={snapshot.name}>
                  <td className="mono long">{snapshot.name}</td>
                  <td className="short">{moment(snapshot.creation_time ?? '')}</td>
                  <td className="number">{bytes(snapshot.size)}</td>
                  <td className="mono" title={snapshot.checksum ?? ''}>
                    {snapshot.checksum?.slice(0, 12) ?? 'unknown'}
                  </td>
                  <td>
                    <div className="row" style={{ flexWrap: 'nowrap' }}>
                      <button
                        type="button"
                        onClick={() => act('Downloading …', () => download(`${path}/${encodeURIComponent(snapshot.name)}`, snapshot.name))}
                      >
                        Download
                      </button>
                      {onRestore !== undefined && (
                        <button type="button" onClick={() => onRestore(snapshot, reload)}>
                          Restore
                        </button>
                      )}
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
