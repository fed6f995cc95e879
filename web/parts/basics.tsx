/** Small parts that all pages use. */

import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { messageOf } from '../base/api.js';
import type { Tone } from '../model/condition.js';

export function Failure({ error }: { readonly error: unknown }): ReactNode {
  if (error === null || error === undefined) return null;
  return (
    <div className="notice bad" role="alert">
      <Prose text={messageOf(error)} />
    </div>
  );
}

export function State({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }): ReactNode {
  return <span className={`state ${tone}`}>{children}</span>;
}

export function Tile({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="tile">
      <b>{children}</b>
      <span>{title}</span>
    </div>
  );
}

/** share: 0 to 1. */
export function Bar({ share, label }: { readonly share: number; readonly label: string }): ReactNode {
  const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
  return (
    <div className="bar" role="progressbar" aria-label={label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
      <i style={{ width: `${percent}%` }} />
    </div>
  );
}

export function Loading(): ReactNode {
  return (
    <p className="faint" role="status">
      Loading …
    </p>
  );
}

/** A sentence of the node's: what stands between backticks are names. */
export function Prose({ text }: { readonly text: string }): ReactNode {
  return text.split('`').map((part, at) => {
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a sentence have no other name
    return at % 2 === 1 ? <code key={at}>{part}</code> : part;
  });
}

interface DialogProps {
  readonly title: string;
  readonly action: string;
  readonly danger?: boolean;
  /** Closes the dialog when it ends well; what it throws is shown. */
  readonly onAct: () => Promise<void> | void;
  readonly onClose: () => void;
  readonly disabled?: boolean;
  readonly children: ReactNode;
}

/** Asks before something is done. */
export function ActDialog({ title, action, danger = false, disabled = false, onAct, onClose, children }: DialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const act = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onAct();
      onClose();
    } catch (met) {
      setError(met);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <form onSubmit={act}>
        <h2 id={titleId}>{title}</h2>
        {children}
        <Failure error={error} />
        <div className="row">
          <span className="grow" />
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className={danger ? 'danger' : 'main-action'} disabled={busy || disabled}>
            {busy ? 'Working …' : action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

export function CopyButton({ text, children = 'Copy' }: { readonly text: string; readonly children?: ReactNode }): ReactNode {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" onClick={copy}>
      {done ? 'Copied' : children}
    </button>
  );
}

/** Pages that are not served over HTTPS or from this machine have no clipboard of their own. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}
