/** Snapshots of a collection: make, download, upload, restore, delete. */

import { type ReactNode, useRef, useState } from 'react';
import { ApiError, call, collectionPath, headers, messageOf, send } from '../base/api.js';
import type { ShownSnapshot } from '../model/api-types.js';
import { ActDialog } from '../parts/basics.js';
import { type Act, SnapshotList } from '../parts/snapshot-list.js';

const PRIORITIES = ['snapshot', 'replica', 'no_sync'];

interface Restored {
  readonly snapshot: ShownSnapshot;
  readonly reload: () => void;
}

export function SnapshotsTab({ name }: { readonly name: string }): ReactNode {
  const path = collectionPath(name, '/snapshots');
  const [restored, setRestored] = useState<Restored | null>(null);
  return (
    <>
      <SnapshotList
        path={path}
        none="There are no snapshots of this collection on this node."
        onRestore={(snapshot, reload) => setRestored({ snapshot, reload })}
        extra={(act, isBusy) => <UploadButton path={path} act={act} isBusy={isBusy} />}
      />
      {restored !== null && (
        <RestoreDialog name={name} snapshot={restored.snapshot} onClose={() => setRestored(null)} onDone={restored.reload} />
      )}
    </>
  );
}

interface UploadProps {
  readonly path: string;
  readonly act: Act;
  readonly isBusy: boolean;
}

function UploadButton({ act, isBusy, path }: UploadProps): ReactNode {
  const file = useRef<HTMLInputElement>(null);
  const upload = (chosen: File): Promise<void> =>
    act(`Uploading ${chosen.name} …`, async () => {
      const form = new FormData();
      form.append('snapshot', chosen);
      const { status, text } = await send('POST', `${path}/upload?priority=snapshot&wait=true`, form);
      if (status >= 400) throw new ApiError(status, text);
    });
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => file.current?.click()}>
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
    </>
  );
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
