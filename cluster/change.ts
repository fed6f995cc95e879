/** What applying an operation returns, and the words to build it. */

import type { ErrorFacts } from '../protocols/errors.js';
import { collectionMissing } from './aliases.js';
import type { Outcome } from './operations.js';
import type { ClusterState, CollectionRecord } from './state.js';

export interface Change {
  readonly state: ClusterState;
  readonly outcome: Outcome;
}

export function done(state: ClusterState): Change {
  return { state, outcome: { kind: 'done', changed: true } };
}

/** It asked for what is there. */
export function unchanged(state: ClusterState): Change {
  return { state, outcome: { kind: 'done', changed: false } };
}

/** S3: nothing but the index has changed. */
export function refused(state: ClusterState, error: ErrorFacts): Change {
  return { state, outcome: { kind: 'refused', error } };
}

export function wrongInput(detail: string): ErrorFacts {
  return { code: 'wrongInput', detail };
}

export function withCollection(state: ClusterState, name: string, record: CollectionRecord): ClusterState {
  return { ...state, collections: new Map(state.collections).set(name, record) };
}

/** Does `change` to the collection called `name`, or refuses when there is none. */
export function onCollection(state: ClusterState, name: string, change: (record: CollectionRecord) => Change): Change {
  const record = state.collections.get(name);
  return record === undefined ? refused(state, collectionMissing(name)) : change(record);
}
