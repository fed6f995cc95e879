/** Points of a collection: browse, filter, similar ones, edit, delete. */

import { type FormEvent, type ReactNode, useState } from 'react';
import { call, collectionPath } from '../base/api.js';
import { useLive } from '../base/live.js';
import type { CollectionInfo, Point } from '../model/api-types.js';
import { type FormCondition, formFilter, OPERATORS } from '../model/filter.js';
import { digits } from '../model/format.js';
import { vectorNames, vectorsOf } from '../model/vectors.js';
import { ActDialog, Failure, Loading } from '../parts/basics.js';
import { PayloadView, VectorBars } from '../parts/payload.js';

const PAGE = 20;

interface Shown {
  readonly points: readonly Point[];
  readonly next: number | string | null;
}

export function PointsTab({ name, info }: { readonly name: string; readonly info: CollectionInfo }): ReactNode {
  const [conditions, setConditions] = useState<readonly FormCondition[]>([]);
  const [similarTo, setSimilarTo] = useState<Point['id'] | null>(null);
  const [using, setUsing] = useState(vectorNames(info)[0]?.name ?? '');
  /** First ids of the pages before this one. */
  const [pages, setPages] = useState<readonly (number | string | null)[]>([null]);
  const [edited, setEdited] = useState<Point | null>(null);
  const [deleted, setDeleted] = useState<Point | null>(null);
  const offset = pages.at(-1) ?? null;
  const key = JSON.stringify([name, conditions, similarTo, using, offset]);
  const { value, error, reload } = useLive(key, (signal) => load(name, { conditions, similarTo, using, offset }, signal), { periodMs: 0 });
  const begin = (): void => setPages([null]);
  return (
    <>
      <FilterForm
        info={info}
        conditions={conditions}
        onChange={(next) => {
          setConditions(next);
          begin();
        }}
      />
      {similarTo !== null && (
        <div className="row notice">
          <span className="grow">{`Points similar to ${similarTo}, the nearest first.`}</span>
          {vectorNames(info).length > 1 && (
            <select aria-label="By which vector" value={using} onChange={(event) => setUsing(event.target.value)}>
              {vectorNames(info).map((vector) => (
                <option key={vector.name}>{vector.name}</option>
              ))}
            </select>
          )}
          <button type="button" onClick={() => setSimilarTo(null)}>
            Show all points
          </button>
        </div>
      )}
      <Failure error={error} />
      {value === undefined && error === null && <Loading />}
      {value?.points.length === 0 && <p>There are no such points.</p>}
      {value?.points.map((point) => (
        <article key={String(point.id)} className="sheet point" aria-label={`Point ${point.id}`}>
          <div>
            <b className="mono">{String(point.id)}</b>
            {point.score !== undefined && similarTo !== null && <div className="small faint">{`score ${digits(point.score)}`}</div>}
            <div className="row">
              <button type="button" className="plain" onClick={() => setSimilarTo(point.id)}>
                Similar
              </button>
              <button type="button" className="plain" onClick={() => setEdited(point)}>
                Edit
              </button>
              <button type="button" className="plain" onClick={() => setDeleted(point)}>
                Delete
              </button>
            </div>
          </div>
          <div>
            <PayloadView payload={point.payload ?? {}} />
            {Object.entries(vectorsOf(point)).map(([vectorName, vector]) => (
              <VectorBars key={vectorName} name={vectorName} vector={vector} />
            ))}
          </div>
        </article>
      ))}
      {similarTo === null && (
        <div className="row">
          <button type="button" disabled={pages.length === 1} onClick={() => setPages(pages.slice(0, -1))}>
            Back
          </button>
          <button
            type="button"
            disabled={value === undefined || value.next === null}
            onClick={() => setPages([...pages, value?.next ?? null])}
          >
            Next
          </button>
        </div>
      )}
      {edited !== null && <EditDialog name={name} point={edited} onClose={() => setEdited(null)} onDone={reload} />}
      {deleted !== null && (
        <ActDialog
          title={`Delete point ${deleted.id}?`}
          action="Delete"
          danger
          onAct={async () => {
            await call('POST', collectionPath(name, '/points/delete?wait=true'), { points: [deleted.id] });
            reload();
          }}
          onClose={() => setDeleted(null)}
        >
          <p>This cannot be undone.</p>
        </ActDialog>
      )}
    </>
  );
}

interface Wanted {
  readonly conditions: readonly FormCondition[];
  readonly similarTo: Point['id'] | null;
  readonly using: string;
  readonly offset: number | string | null;
}

async function load(name: string, { conditions, similarTo, using, offset }: Wanted, signal: AbortSignal): Promise<Shown> {
  const filter = formFilter(conditions);
  const shared = { limit: PAGE, with_payload: true, with_vector: true, ...(filter === null ? {} : { filter }) };
  if (similarTo === null) {
    const body = { ...shared, ...(offset === null ? {} : { offset }) };
    const { points, next_page_offset } = await call<{ points: readonly Point[]; next_page_offset: number | string | null }>(
      'POST',
      collectionPath(name, '/points/scroll'),
      body,
      signal,
    );
    return { points, next: next_page_offset };
  }
  const body = { ...shared, query: similarTo, ...(using === '' ? {} : { using }) };
  const { points } = await call<{ points: readonly Point[] }>('POST', collectionPath(name, '/points/query'), body, signal);
  return { points, next: null };
}

interface FilterFormProps {
  readonly info: CollectionInfo;
  readonly conditions: readonly FormCondition[];
  readonly onChange: (conditions: readonly FormCondition[]) => void;
}

function FilterForm({ info, conditions, onChange }: FilterFormProps): ReactNode {
  const [field, setField] = useState('');
  const [operator, setOperator] = useState(OPERATORS[0] as string);
  const [value, setValue] = useState('');
  const add = (event: FormEvent): void => {
    event.preventDefault();
    onChange([...conditions, { field, operator, value }]);
    setValue('');
  };
  return (
    <form className="row" onSubmit={add} style={{ marginBottom: '1rem' }} aria-label="Filter">
      <input
        required
        aria-label="Field"
        placeholder="field of the payload"
        list="fields"
        value={field}
        onChange={(event) => setField(event.target.value)}
      />
      <datalist id="fields">
        {Object.keys(info.payload_schema).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <select aria-label="Comparison" value={operator} onChange={(event) => setOperator(event.target.value)}>
        {OPERATORS.map((word) => (
          <option key={word}>{word}</option>
        ))}
      </select>
      <input aria-label="Value" placeholder="value" value={value} onChange={(event) => setValue(event.target.value)} />
      <button type="submit">Filter</button>
      {conditions.map((condition, at) => (
        <button
          key={`${condition.field} ${condition.operator} ${condition.value}`}
          type="button"
          className="chip"
          aria-label={`Remove the condition on ${condition.field}`}
          onClick={() => onChange(conditions.filter((_, other) => other !== at))}
        >
          {`${condition.field} ${condition.operator} ${condition.value} ×`}
        </button>
      ))}
    </form>
  );
}

interface EditProps {
  readonly name: string;
  readonly point: Point;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function EditDialog({ name, point, onClose, onDone }: EditProps): ReactNode {
  const [text, setText] = useState(JSON.stringify(point.payload ?? {}, null, 2));
  const save = async (): Promise<void> => {
    await call('PUT', collectionPath(name, '/points/payload?wait=true'), { points: [point.id], payload: JSON.parse(text) });
    onDone();
  };
  return (
    <ActDialog title={`Payload of point ${point.id}`} action="Save" onAct={save} onClose={onClose}>
      <label>
        Payload as JSON
        <textarea rows={14} value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
      </label>
    </ActDialog>
  );
}
