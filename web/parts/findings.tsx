/** Why something is slow, yellow or Dead at this moment. */

import type { ReactNode } from 'react';
import { ApiError, call, collectionPath } from '../base/api.js';
import { useLive } from '../base/live.js';
import { linkTo } from '../base/router.js';
import type { CollectionCluster, CollectionInfo, Optimizations, ShownCluster, Telemetry } from '../model/api-types.js';
import { type CollectionFacts, findingsOf, type NodeFinding } from '../model/findings.js';
import { count } from '../model/format.js';
import { Failure, Loading, State } from './basics.js';

/** More would be many requests each time. */
const COLLECTIONS_MAX = 100;
const OPTIONS = {
  periodMs: 3000,
  followed: { topics: ['collections', 'replicas', 'transfers', 'optimizations', 'actors'] },
  followedPeriodMs: 5000,
};

interface Loaded {
  readonly findings: readonly NodeFinding[];
  readonly looked: number;
  readonly total: number;
}

export function Findings(): ReactNode {
  const { value, error } = useLive('findings', load, OPTIONS);
  return (
    <section className="sheet" aria-label="Why it is so">
      <h2>Why it is so</h2>
      <Failure error={error} />
      {value === undefined && error === null && <Loading />}
      {value?.findings.length === 0 && (
        <p className="good">All is well: nothing is slow, yellow or Dead for a reason that this node knows.</p>
      )}
      <ul className="findings">
        {value?.findings.map(({ more, sentence, subject, tone }) => (
          <li key={`${subject} ${sentence}`}>
            <State tone={tone}>{subject}</State> <span className="payload">{sentence}</span> <a href={linkTo(...more)}>more</a>
          </li>
        ))}
      </ul>
      {value !== undefined && value.total > value.looked && (
        <p className="faint small">{`The first ${value.looked} of ${count(value.total)} collections were looked at.`}</p>
      )}
    </section>
  );
}

async function load(signal: AbortSignal): Promise<Loaded> {
  const [cluster, telemetry, { collections }] = await Promise.all([
    ifAllowed(call<ShownCluster>('GET', '/cluster', undefined, signal)),
    ifAllowed(call<Telemetry>('GET', '/telemetry', undefined, signal)),
    call<{ collections: readonly { name: string }[] }>('GET', '/collections', undefined, signal),
  ]);
  const facts = await Promise.all(collections.slice(0, COLLECTIONS_MAX).map(({ name }) => loadCollection(name, signal)));
  const known = facts.filter((one) => one !== null);
  return { findings: findingsOf({ collections: known, cluster, telemetry }), looked: known.length, total: collections.length };
}

async function loadCollection(name: string, signal: AbortSignal): Promise<CollectionFacts | null> {
  try {
    const [info, cluster] = await Promise.all([
      call<CollectionInfo>('GET', collectionPath(name), undefined, signal),
      call<CollectionCluster>('GET', collectionPath(name, '/cluster'), undefined, signal),
    ]);
    if (info.status === 'green') return { name, info, cluster };
    return {
      name,
      info,
      cluster,
      optimizations: await call<Optimizations>('GET', collectionPath(name, '/optimizations'), undefined, signal),
    };
  } catch (error) {
    // It may just have been deleted.
    if (signal.aborted) throw error;
    return null;
  }
}

/** What a token for some collections may not see is left out. */
async function ifAllowed<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}
