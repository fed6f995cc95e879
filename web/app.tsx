/** The frame around all pages: where one can go, the key, light or dark. */

import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useId, useState } from 'react';
import { call, isKeyRemembered, onRefusal, storedKey, storeKey } from './base/api.js';
import { linkTo, useRoute } from './base/router.js';
import { CollectionsPage } from './pages/collections.js';
import { ActDialog, Loading } from './parts/basics.js';

/** A page whose program comes after the first view, which does not wait for it: right after it, so that it is there when the node is not. */
function later(load: () => Promise<ComponentType>): Pick<PageEntry, 'load' | 'Page'> {
  return { load, Page: lazy(async () => ({ default: await load() })) };
}
const LATER_MS = 1000;

interface PageEntry {
  readonly path: string;
  readonly title: string;
  readonly Page: ComponentType;
  readonly load?: () => Promise<unknown>;
}

const PAGES: readonly PageEntry[] = [
  { path: 'collections', title: 'Collections', Page: CollectionsPage },
  { path: 'console', title: 'Console', ...later(async () => (await import('./pages/console.js')).ConsolePage) },
  { path: 'cluster', title: 'Cluster', ...later(async () => (await import('./pages/cluster.js')).ClusterPage) },
  { path: 'transfers', title: 'Transfers', ...later(async () => (await import('./pages/transfers.js')).TransfersPage) },
  { path: 'snapshots', title: 'Snapshots', ...later(async () => (await import('./pages/storage-snapshots.js')).StorageSnapshotsPage) },
  { path: 'advice', title: 'Why and advice', ...later(async () => (await import('./pages/advice.js')).AdvicePage) },
  { path: 'slow', title: 'Slow requests', ...later(async () => (await import('./pages/slow-requests.js')).SlowRequestsPage) },
  { path: 'actors', title: 'Actors', ...later(async () => (await import('./pages/actors.js')).ActorsPage) },
  { path: 'metrics', title: 'Metrics', ...later(async () => (await import('./pages/metrics.js')).MetricsPage) },
  { path: 'jwt', title: 'Tokens', ...later(async () => (await import('./pages/token.js')).TokenPage) },
];
const loadCollectionPage = async () => ({ default: (await import('./pages/collection.js')).CollectionPage });
const CollectionPage = lazy(loadCollectionPage);
const THEME = 'troupe.theme';

export function App(): ReactNode {
  const route = useRoute();
  const [page = 'collections', ...rest] = route;
  const [asksForKey, setAsksForKey] = useState(false);
  // Another key may see other things: all that is shown is asked for anew.
  const [keyRound, setKeyRound] = useState(0);
  useEffect(() => onRefusal(() => setAsksForKey(true)), []);
  useEffect(() => {
    const timer = setTimeout(() => {
      // One that does not come now is asked for again when its page is opened.
      for (const load of [loadCollectionPage, ...PAGES.flatMap(({ load = [] }) => load)]) load().catch(() => {});
    }, LATER_MS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    document.title = `${PAGES.find(({ path }) => path === page)?.title ?? 'Troupe'} – Troupe`;
    // On a phone the pages are one row, which is longer than the screen.
    document.querySelector('.side [aria-current="page"]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [page]);
  return (
    <div className="shell">
      <button type="button" className="skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to the content
      </button>
      <header className="side">
        <a className="brand" href={linkTo('collections')}>
          <img src={`${import.meta.env.BASE_URL}icon.svg`} width="28" height="28" alt="" />
          Troupe
        </a>
        <nav aria-label="Pages">
          {PAGES.map(({ path, title }) => (
            <a key={path} href={linkTo(path)} aria-current={path === page ? 'page' : undefined}>
              {title}
            </a>
          ))}
          <a href="/docs">API reference</a>
        </nav>
        <div className="foot">
          <NodeVersion key={keyRound} />
          <button type="button" onClick={() => setAsksForKey(true)}>
            {storedKey() === '' ? 'Enter a key' : 'Change the key'}
          </button>
          <ThemeChoice />
        </div>
      </header>
      <main className="main" id="content" tabIndex={-1} key={keyRound}>
        <Suspense fallback={<Loading />}>
          <Page page={page} rest={rest} />
        </Suspense>
      </main>
      {asksForKey && <KeyDialog onClose={() => setAsksForKey(false)} onStored={() => setKeyRound((round) => round + 1)} />}
    </div>
  );
}

function Page({ page, rest }: { readonly page: string; readonly rest: readonly string[] }): ReactNode {
  const [name, tab = 'points'] = rest;
  if (page === 'collections' && name !== undefined) return <CollectionPage key={name} name={name} tab={tab} />;
  const entry = PAGES.find(({ path }) => path === page);
  if (entry !== undefined) return <entry.Page />;
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        Go to the <a href={linkTo('collections')}>collections</a>.
      </p>
    </>
  );
}

function NodeVersion(): ReactNode {
  const value = useRoot();
  return value === undefined ? null : <span>{`Troupe ${value.troupe?.version ?? ''}, API ${value.version}`}</span>;
}

interface Root {
  readonly version: string;
  readonly troupe?: { readonly version: string };
}

/** `GET /` has no envelope. */
function useRoot(): Root | undefined {
  const [value, setValue] = useState<Root>();
  useEffect(() => {
    const abort = new AbortController();
    fetch('/', { signal: abort.signal, headers: { accept: 'application/json' } })
      .then((response) => response.json())
      .then(setValue, () => {});
    return () => abort.abort();
  }, []);
  return value;
}

function KeyDialog({ onClose, onStored }: { readonly onClose: () => void; readonly onStored: () => void }): ReactNode {
  const [key, setKey] = useState(storedKey());
  const [remember, setRemember] = useState(isKeyRemembered);
  const id = useId();
  const store = async (): Promise<void> => {
    const [before, wasRemembered] = [storedKey(), isKeyRemembered()];
    storeKey(key.trim(), remember);
    try {
      await call('GET', '/collections');
    } catch (error) {
      storeKey(before, wasRemembered);
      throw error;
    }
    onStored();
  };
  return (
    <ActDialog title="Key or token" action="Use it" onAct={store} onClose={onClose}>
      <p className="small faint">It stays in this browser and is sent to this node only, in a header.</p>
      <label htmlFor={id}>
        API key or token
        <input id={id} type="password" autoComplete="off" value={key} onChange={(event) => setKey(event.target.value)} />
      </label>
      <label className="line">
        <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.target.checked)} />
        Keep it when the browser is closed
      </label>
    </ActDialog>
  );
}

function ThemeChoice(): ReactNode {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? 'system');
  useEffect(() => {
    if (theme === 'system') {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem(THEME);
    } else {
      document.documentElement.dataset.theme = theme;
      localStorage.setItem(THEME, theme);
    }
  }, [theme]);
  return (
    <label>
      <span>Colours</span>
      <select aria-label="Colours" value={theme} onChange={(event) => setTheme(event.target.value)}>
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}
