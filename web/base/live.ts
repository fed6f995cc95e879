/** Values that are asked for again and again while somebody looks at them. */

import { useCallback, useEffect, useRef, useState } from 'react';
import { call } from './api.js';
import { type Followed, follow, isFollowing } from './events.js';

export interface Live<Value> {
  /** The last value; undefined before the first one. */
  readonly value: Value | undefined;
  /** What the last try met; null when it went well. */
  readonly error: unknown;
  reload(): void;
}

export interface LiveOptions {
  /** Milliseconds until it is asked for again; 0: only once. */
  readonly periodMs: number;
  /** What it shows: while the node tells of changes of that, it is asked for after a change. */
  readonly followed?: Followed;
  /** The period meanwhile, for figures that change without being told of. */
  readonly followedPeriodMs?: number;
}

const FOLLOWED_PERIOD_MS = 15_000;
/** Changes that come one after the other are asked for together. */
const APART_MS = 250;

/** What `load` gives, again and again while the page is seen. `key` tells one thing that is asked for from another. */
export function useLive<Value>(key: string, load: (signal: AbortSignal) => Promise<Value>, options: LiveOptions): Live<Value> {
  const { followed, followedPeriodMs = FOLLOWED_PERIOD_MS, periodMs } = options;
  const [state, setState] = useState<{ key: string; value: Value | undefined; error: unknown }>({ key, value: undefined, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const followedKey = JSON.stringify(followed ?? null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round asks again at once, and what is followed is compared as text
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isRunning = false;
    let isOld = false;
    let isSoon = false;
    const after = (milliseconds: number): void => {
      clearTimeout(timer);
      timer = setTimeout(run, milliseconds);
    };
    const again = (): void => {
      isRunning = false;
      if (abort.signal.aborted) return;
      const waits = followed !== undefined && isFollowing() ? followedPeriodMs : periodMs;
      if (isOld) after(APART_MS);
      else if (waits > 0) after(waits);
    };
    const changed = (): void => {
      if (isRunning) isOld = true;
      // Changes that go on and on put nothing off.
      else if (!isSoon) after(APART_MS);
      isSoon = !isRunning;
    };
    const run = (): void => {
      if (document.hidden) {
        // What is asked for once would never be: it waits until the page is seen.
        if (periodMs === 0) document.addEventListener('visibilitychange', run, { once: true, signal: abort.signal });
        else again();
        return;
      }
      isRunning = true;
      isOld = false;
      isSoon = false;
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
    const stop = followed === undefined ? undefined : follow(followed, changed);
    run();
    return () => {
      stop?.();
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, periodMs, round, followedKey]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return state.key === key ? { value: state.value, error: state.error, reload } : { value: undefined, error: null, reload };
}

/** The `result` of `GET path`. */
export function useResult<Value>(path: string, options: LiveOptions): Live<Value> {
  return useLive(path, (signal) => call<Value>('GET', path, undefined, signal), options);
}
