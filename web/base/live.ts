/** Values that are asked for again and again while somebody looks at them. */

import { useCallback, useEffect, useRef, useState } from 'react';
import { call } from './api.js';

export interface Live<Value> {
  /** The last value; undefined before the first one. */
  readonly value: Value | undefined;
  /** What the last try met; null when it went well. */
  readonly error: unknown;
  reload(): void;
}

/** What `load` gives, again every `periodMs` while the page is seen; 0: only once. `key` tells one thing that is asked for from another. */
export function useLive<Value>(key: string, load: (signal: AbortSignal) => Promise<Value>, periodMs: number): Live<Value> {
  const [state, setState] = useState<{ key: string; value: Value | undefined; error: unknown }>({ key, value: undefined, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round asks again at once
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (): void => {
      if (periodMs > 0 && !abort.signal.aborted) timer = setTimeout(run, periodMs);
    };
    const run = (): void => {
      if (document.hidden) {
        again();
        return;
      }
      latest.current(abort.signal).then(
        (value) => {
          if (abort.signal.aborted) return;
          setState({ key, value, error: null });
          again();
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setState((before) => ({ key, value: before.key === key ? before.value : undefined, error }));
          again();
        },
      );
    };
    run();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, periodMs, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return state.key === key ? { value: state.value, error: state.error, reload } : { value: undefined, error: null, reload };
}

/** The `result` of `GET path`, again every `periodMs`. */
export function useResult<Value>(path: string, periodMs = 0): Live<Value> {
  return useLive(path, (signal) => call<Value>('GET', path, undefined, signal), periodMs);
}
