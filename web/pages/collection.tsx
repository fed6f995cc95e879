/** One collection: its state, and a tab for each thing that it has. */

import type { ReactNode } from 'react';
import { call, collectionPath } from '../base/api.js';
import { useLive } from '../base/live.js';
import { linkTo } from '../base/router.js';
import type { CollectionCluster, CollectionInfo, Optimizations } from '../model/api-types.js';
import { conditionOf } from '../model/condition.js';
import { count, percent } from '../model/format.js';
import { vectorNames } from '../model/vectors.js';
import { Failure, Loading, State, Tile } from '../parts/basics.js';
import { InfoTab } from './info-tab.js';
import { MapTab } from './map-tab.js';
import { OptimizationsTab } from './optimizations-tab.js';
import { PointsTab } from './points-tab.js';
import { ReplicasTab } from './replicas-tab.js';
import { SnapshotsTab } from './snapshots-tab.js';

const TABS: readonly { readonly tab: string; readonly title: string }[] = [
  { tab: 'points', title: 'Points' },
  { tab: 'map', title: 'Map' },
  { tab: 'info', title: 'Settings and indexes' },
  { tab: 'replicas', title: 'Replicas' },
  { tab: 'optimizations', title: 'Optimizations' },
  { tab: 'snapshots', title: 'Snapshots' },
];
const TOPICS = ['collections', 'replicas', 'transfers', 'optimizations'];
const PERIOD_MS = 2000;

export interface CollectionReport {
  readonly info: CollectionInfo;
  readonly cluster: CollectionCluster;
  readonly optimizations: Optimizations;
}

export function CollectionPage({ name, tab }: { readonly name: string; readonly tab: string }): ReactNode {
  const { value, error, reload } = useLive(name, (signal) => load(name, signal), {
    periodMs: PERIOD_MS,
    followed: { topics: TOPICS, group: name },
  });
  if (value === undefined && error === null) return <Loading />;
  if (value === undefined) return <Missing name={name} error={error} />;
  const { info, cluster, optimizations } = value;
  const { tone, sentence } = conditionOf(info, cluster, optimizations);
  const points = info.points_count ?? 0;
  return (
    <>
      <p className="small" style={{ margin: 0 }}>
        <a href={linkTo('collections')}>Collections</a>
      </p>
      <div className="head">
        <h1>{name}</h1>
        <State tone={tone}>{info.status}</State>
        <span>{sentence}</span>
      </div>
      <Failure error={error} />
      {(info.warnings ?? []).map(({ message }) => (
        <div key={message} className="notice busy">
          {message}
        </div>
      ))}
      <div className="tiles">
        <Tile title="points">{count(points)}</Tile>
        <Tile title="vectors indexed">{percent(info.indexed_vectors_count ?? 0, points * Math.max(1, vectorNames(info).length))}</Tile>
        <Tile title="segments">{count(info.segments_count)}</Tile>
        <Tile title="shards">{count(cluster.shard_count)}</Tile>
        <Tile title="payload indexes">{count(Object.keys(info.payload_schema).length)}</Tile>
      </div>
      <nav className="tabs" aria-label={`Parts of ${name}`}>
        {TABS.map(({ tab: one, title }) => (
          <a key={one} href={linkTo('collections', name, one)} aria-current={one === tab ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Tab name={name} tab={tab} report={value} reload={reload} />
    </>
  );
}

function Missing({ name, error }: { readonly name: string; readonly error: unknown }): ReactNode {
  return (
    <>
      <div className="head">
        <h1>{name}</h1>
      </div>
      <Failure error={error} />
      <p>
        Go to the <a href={linkTo('collections')}>collections</a>.
      </p>
    </>
  );
}

async function load(name: string, signal: AbortSignal): Promise<CollectionReport> {
  const [info, cluster, optimizations] = await Promise.all([
    call<CollectionInfo>('GET', collectionPath(name), undefined, signal),
    call<CollectionCluster>('GET', collectionPath(name, '/cluster'), undefined, signal),
    call<Optimizations>('GET', collectionPath(name, '/optimizations?with=queued,completed,idle_segments'), undefined, signal),
  ]);
  return { info, cluster, optimizations };
}

interface TabProps {
  readonly name: string;
  readonly tab: string;
  readonly report: CollectionReport;
  readonly reload: () => void;
}

function Tab({ name, tab, report, reload }: TabProps): ReactNode {
  switch (tab) {
    case 'points':
      return <PointsTab name={name} info={report.info} />;
    case 'map':
      return <MapTab name={name} info={report.info} />;
    case 'info':
      return <InfoTab name={name} info={report.info} reload={reload} />;
    case 'replicas':
      return <ReplicasTab name={name} cluster={report.cluster} reload={reload} />;
    case 'optimizations':
      return <OptimizationsTab optimizations={report.optimizations} />;
    case 'snapshots':
      return <SnapshotsTab name={name} />;
    default:
      return <p>There is no such part of a collection.</p>;
  }
}
