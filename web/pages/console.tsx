/** Any request, written by hand, with proposals from the API's description, and as code to copy. */

import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { call, messageOf, send, storedKey } from '../base/api.js';
import { useLive } from '../base/live.js';
import { type ConsoleRequest, curlOf, javascriptOf, parseRequest, pythonOf } from '../model/client-code.js';
import { completionAt, type OpenApi } from '../model/completion.js';
import { canExplain, explainedPath, explanationIn } from '../model/explain.js';
import { seconds } from '../model/format.js';
import { CopyButton, Failure } from '../parts/basics.js';
import { ExplainView } from '../parts/explain-view.js';

const HISTORY = 'troupe.console';
const HISTORY_MAX = 30;
const EXAMPLE = 'GET /collections';

interface Shown {
  readonly status: number;
  readonly text: string;
  readonly milliseconds: number;
}

export function ConsolePage(): ReactNode {
  const [history, setHistory] = useState<readonly string[]>(readHistory);
  const [text, setText] = useState(history[0] ?? EXAMPLE);
  const [shown, setShown] = useState<Shown | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const parsed = parseRequest(text);
  const explanation = shown === null ? null : explanationIn(shown.text);
  const run = async (explains = false): Promise<void> => {
    if (typeof parsed === 'string') {
      setError(new Error(parsed));
      return;
    }
    setBusy(true);
    setError(null);
    const next = [text, ...history.filter((one) => one !== text)].slice(0, HISTORY_MAX);
    setHistory(next);
    localStorage.setItem(HISTORY, JSON.stringify(next));
    try {
      const path = explains ? explainedPath(parsed.path) : parsed.path;
      const answer = await send(parsed.method, path, parsed.body === '' ? undefined : parsed.body);
      setShown({ ...answer, text: pretty(answer.text) });
    } catch (met) {
      setError(met);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div className="head">
        <h1>Console</h1>
        <span className="grow" />
        <label className="line">
          History
          <select value="" onChange={(event) => setText(history[Number(event.target.value)] ?? text)}>
            <option value="" disabled>
              {history.length === 0 ? 'nothing sent yet' : 'choose a request …'}
            </option>
            {history.map((one, at) => (
              <option key={one} value={at}>
                {one.split('\n')[0]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <div className="console">
        <section className="sheet" aria-label="Request">
          <Editor text={text} onChange={setText} onRun={() => run()} />
          <div className="row" style={{ marginTop: '0.6rem' }}>
            <button type="button" className="main-action" disabled={busy} onClick={() => run()}>
              {busy ? 'Sending …' : 'Send (Ctrl+Enter)'}
            </button>
            {typeof parsed !== 'string' && canExplain(parsed.method, parsed.path) && (
              <button type="button" disabled={busy} onClick={() => run(true)}>
                Explain
              </button>
            )}
            {typeof parsed !== 'string' && <CodeButtons request={parsed} />}
          </div>
          {typeof parsed === 'string' && <p className="small faint">{parsed}</p>}
        </section>
        <section className="sheet" aria-label="Answer">
          <Failure error={error} />
          {shown === null && error === null && <p className="faint">The answer comes here.</p>}
          {shown !== null && (
            <>
              <p className={shown.status < 400 ? 'good' : 'bad'} role="status">
                {`${shown.status}, ${seconds(shown.milliseconds / 1000)}`}
              </p>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
              <pre tabIndex={0}>{shown.text}</pre>
            </>
          )}
        </section>
      </div>
      {explanation !== null && <ExplainView explanation={explanation} />}
    </>
  );
}

function CodeButtons({ request }: { readonly request: ConsoleRequest }): ReactNode {
  const withKey = storedKey() !== '';
  return (
    <>
      <CopyButton text={curlOf(request, location.origin, withKey)}>Copy as curl</CopyButton>
      <CopyButton text={javascriptOf(request, location.origin, withKey)}>as JavaScript</CopyButton>
      <CopyButton text={pythonOf(request, location.origin, withKey)}>as Python</CopyButton>
    </>
  );
}

interface EditorProps {
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly onRun: () => void;
}

interface Known {
  readonly api: OpenApi;
  readonly collections: readonly string[];
}

function Editor({ text, onChange, onRun }: EditorProps): ReactNode {
  const area = useRef<HTMLTextAreaElement>(null);
  /** Where proposals are wanted; null: nowhere. They come once the description of the API is there, also when that is later. */
  const [wanted, setWanted] = useState<{ readonly text: string; readonly place: number } | null>(null);
  const [at, setAt] = useState(0);
  const { value: known, error } = useLive<Known>('known', loadKnown, { periodMs: 0 });
  const completion = useMemo(
    () => (wanted === null || known === undefined ? null : completionAt(wanted.text, wanted.place, known.api, known.collections)),
    [wanted, known],
  );
  const cursor = useRef<number | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the cursor is put where it belongs once the new text is there
  useEffect(() => {
    if (cursor.current === null) return;
    area.current?.setSelectionRange(cursor.current, cursor.current);
    cursor.current = null;
  }, [text]);
  const propose = (next: string, place: number): void => {
    setAt(0);
    setWanted({ text: next, place });
  };
  const take = (choice: string): void => {
    if (completion === null) return;
    const end = area.current?.selectionStart ?? text.length;
    const next = text.slice(0, completion.start) + choice + text.slice(end);
    cursor.current = completion.start + choice.length;
    onChange(next);
    setWanted(null);
    area.current?.focus();
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      setWanted(null);
      onRun();
      return;
    }
    if (completion === null) return;
    const { choices } = completion;
    if (event.key === 'ArrowDown') setAt((at + 1) % choices.length);
    else if (event.key === 'ArrowUp') setAt((at + choices.length - 1) % choices.length);
    else if (event.key === 'Enter' || event.key === 'Tab') take((choices[at] as { text: string }).text);
    else if (event.key === 'Escape') setWanted(null);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <label>
        Method and path; the body from the next line on
        <textarea
          ref={area}
          value={text}
          spellCheck={false}
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={completion !== null}
          aria-controls="choices"
          aria-activedescendant={completion === null ? undefined : `choice-${at}`}
          onChange={(event) => {
            onChange(event.target.value);
            propose(event.target.value, event.target.selectionStart);
          }}
          onKeyDown={pressed}
          onBlur={() => setTimeout(() => setWanted(null), 150)}
        />
      </label>
      <div id="choices" role="listbox" aria-label="Proposals" className={completion === null ? '' : 'choices'}>
        {completion?.choices.map((choice, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the text that is written
          <div
            key={choice.text}
            id={`choice-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === at}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(choice.text)}
          >
            <code>{choice.text}</code>
            <small>{choice.note}</small>
          </div>
        ))}
      </div>
      {error !== null && <p className="small faint">{`There are no proposals: ${messageOf(error)}`}</p>}
    </>
  );
}

async function loadKnown(signal: AbortSignal): Promise<Known> {
  const [{ text }, { collections }] = await Promise.all([
    send('GET', '/openapi.json', undefined, signal),
    call<{ collections: readonly { name: string }[] }>('GET', '/collections', undefined, signal),
  ]);
  return { api: JSON.parse(text) as OpenApi, collections: collections.map(({ name }) => name) };
}

function readHistory(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(HISTORY) ?? '[]');
    return Array.isArray(stored) ? stored.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
