/** The frame around all pages: where one can go, the key, light or dark. */

import { lazy, type ReactNode, Suspense, useEffect, useId, useState } from 'react';
import { call, isKeyRemembered, onRefusal, storedKey, storeKey } from './base/api.js';
import { linkTo, useRoute } from './base/router.js';
import { CollectionsPage } from './pages/collections.js';
import { ActDialog, Loading } from './parts/basics.js';

/** The first view does not wait for the programs of other pages. They come right after it, so that they are there when the node is not. */
const LATER = {
  actors: () => import('./pages/actors.js'),
  advice: () => import('./pages/advice.js'),
  cluster: () => import('./pages/cluster.js'),
  collection: () => import('./pages/collection.js'),
  console: () => import('./pages/console.js'),
  metrics: () => import('./pages/metrics.js'),
  slowRequests: () => import('./pages/slow-requests.js'),
  storageSnapshots: () => import('./pages/storage-snapshots.js'),
  token: () => import('./pages/token.js'),
  transfers: () => import('./pages/transfers.js'),
};
const ActorsPage = lazy(async () => ({ default: (await LATER.actors()).ActorsPage }));
const AdvicePage = lazy(async () => ({ default: (await LATER.advice()).AdvicePage }));
const ClusterPage = lazy(async () => ({ default: (await LATER.cluster()).ClusterPage }));
const CollectionPage = lazy(async () => ({ default: (await LATER.collection()).CollectionPage }));
const ConsolePage = lazy(async () => ({ default: (await LATER.console()).ConsolePage }));
const MetricsPage = lazy(async () => ({ default: (await LATER.metrics()).MetricsPage }));
const SlowRequestsPage = lazy(async () => ({ default: (await LATER.slowRequests()).SlowRequestsPage }));
const StorageSnapshotsPage = lazy(async () => ({ default: (await LATER.storageSnapshots()).StorageSnapshotsPage }));
const TokenPage = lazy(async () => ({ default: (await LATER.token()).TokenPage }));
const TransfersPage = lazy(async () => ({ default: (await LATER.transfers()).TransfersPage }));
const LATER_MS = 1000;

const PAGES: readonly { readonly path: string; readonly title: string }[] = [
  { path: 'collections', title: 'Collections' },
  { path: 'console', title: 'Console' },
  { path: 'cluster', title: 'Cluster' },
  { path: 'transfers', title: 'Transfers' },
  { path: 'snapshots', title: 'Snapshots' },
  { path: 'advice', title: 'Why and advice' },
  { path: 'slow', title: 'Slow requests' },
  { path: 'actors', title: 'Actors' },
  { path: 'metrics', title: 'Metrics' },
  { path: 'jwt', title: 'Tokens' },
];
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
      for (const load of Object.values(LATER)) load().catch(() => {});
    }, LATER_MS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    document.title = `${PAGES.find(({ path }) => path === page)?.title ?? 'Troupe'} – Troupe`;
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
  switch (page) {
    case 'collections':
      return rest[0] === undefined ? <CollectionsPage /> : <CollectionPage key={rest[0]} name={rest[0]} tab={rest[1] ?? 'points'} />;
    case 'console':
      return <ConsolePage />;
    case 'cluster':
      return <ClusterPage />;
    case 'transfers':
      return <TransfersPage />;
    case 'snapshots':
      return <StorageSnapshotsPage />;
    case 'advice':
      return <AdvicePage />;
    case 'actors':
      return <ActorsPage />;
    case 'slow':
      return <SlowRequestsPage />;
    case 'metrics':
      return <MetricsPage />;
    case 'jwt':
      return <TokenPage />;
    default:
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            Go to the <a href={linkTo('collections')}>collections</a>.
          </p>
        </>
      );
  }
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
      Colours
      <select value={theme} onChange={(event) => setTheme(event.target.value)}>
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}
