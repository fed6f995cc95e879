/** Settings of a collection, and the indexes of its payload. */

import { type FormEvent, type ReactNode, useState } from 'react';
import { call, collectionPath } from '../base/api.js';
import type { CollectionInfo } from '../model/api-types.js';
import { count } from '../model/format.js';
import { CopyButton, Failure } from '../parts/basics.js';

const TYPES = ['keyword', 'integer', 'float', 'bool', 'geo', 'datetime', 'text', 'uuid'];

interface Props {
  readonly name: string;
  readonly info: CollectionInfo;
  readonly reload: () => void;
}

export function InfoTab({ name, info, reload }: Props): ReactNode {
  const [error, setError] = useState<unknown>(null);
  const act = async (work: Promise<unknown>): Promise<void> => {
    setError(null);
    try {
      await work;
      reload();
    } catch (met) {
      setError(met);
    }
  };
  const settings = JSON.stringify(info.config, null, 2);
  return (
    <div className="two">
      <section className="sheet" aria-label="Payload indexes">
        <h2>Payload indexes</h2>
        <Failure error={error} />
        {Object.keys(info.payload_schema).length === 0 && (
          <p>No field has an index. A filter reads the payload of every point that it is asked about.</p>
        )}
        <table>
          <tbody>
            {Object.entries(info.payload_schema).map(([field, { data_type, points = 0 }]) => (
              <tr key={field}>
                <td className="mono">{field}</td>
                <td>{data_type}</td>
                <td className="number">{`${count(points)} points`}</td>
                <td>
                  <button
                    type="button"
                    className="danger"
                    aria-label={`Delete the index of ${field}`}
                    onClick={() => act(call('DELETE', collectionPath(name, `/index/${encodeURIComponent(field)}?wait=true`)))}
                  >
                    Delete
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <IndexForm onCreate={(body) => act(call('PUT', collectionPath(name, '/index?wait=true'), body))} />
      </section>
      <section className="sheet" aria-label="Settings">
        <div className="row">
          <h2 className="grow">Settings</h2>
          <CopyButton text={settings} />
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
        <pre tabIndex={0}>{settings}</pre>
      </section>
    </div>
  );
}

function IndexForm({ onCreate }: { readonly onCreate: (body: object) => Promise<void> }): ReactNode {
  const [field, setField] = useState('');
  const [type, setType] = useState(TYPES[0] as string);
  const create = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    await onCreate({ field_name: field, field_schema: type });
    setField('');
  };
  return (
    <form className="row" onSubmit={create} aria-label="Create an index">
      <input
        required
        aria-label="Field"
        placeholder="field of the payload"
        value={field}
        onChange={(event) => setField(event.target.value)}
      />
      <select aria-label="Type" value={type} onChange={(event) => setType(event.target.value)}>
        {TYPES.map((word) => (
          <option key={word}>{word}</option>
        ))}
      </select>
      <button type="submit">Create an index</button>
    </form>
  );
}
