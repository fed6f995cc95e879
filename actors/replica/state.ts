/**
 * The life of a replica on this node. What the cluster agreed on for it (Active, Partial, Dead, Listener …) is another matter:
 * `ReplicaState` in `protocols/model/cluster.ts`. A Partial replica serves its node just as an Active one does; it is the agreed state that
 * keeps reads away from it.
 *
 * | state   | meaning | reads and writes |
 * |---------|---------|------------------|
 * | Opening | its files are being opened | no |
 * | Serving | its files are open | yes |
 * | Failed  | it could not be opened, or failed; tried again later | no |
 * | Closing | nothing leads back | no |
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import type { WriteAnswer } from './messages.js';

export type ReplicaLife = OpeningReplica | ServingReplica | FailedReplica | ClosingReplica;

export interface OpeningReplica {
  readonly kind: 'Opening';
  readonly config: CollectionConfig;
  /** Whether the configuration changed after opening began. */
  readonly configChanged: boolean;
  /** Failures in a row before this try. */
  readonly failures: number;
  /** Of the failure before, null for the first try. */
  readonly reason: ErrorFacts | null;
}

export interface ServingReplica {
  readonly kind: 'Serving';
  readonly config: CollectionConfig;
  /** Answers to `createFieldIndex` that wait for the index of every sealed segment. */
  readonly heldAnswers: readonly HeldAnswer[];
}

export interface FailedReplica {
  readonly kind: 'Failed';
  readonly config: CollectionConfig;
  readonly reason: ErrorFacts;
  /** Failures in a row. */
  readonly failures: number;
}

export interface ClosingReplica {
  readonly kind: 'Closing';
}

export interface HeldAnswer {
  readonly answer: WriteAnswer;
  /** Index files that were missing when the index was created. */
  readonly missing: readonly MissingIndex[];
}

export interface MissingIndex {
  readonly segment: number;
  readonly field: string;
}

export function openingReplica(config: CollectionConfig, failures: number, reason: ErrorFacts | null): OpeningReplica {
  return { kind: 'Opening', config, configChanged: false, failures, reason };
}

export function servingReplica(config: CollectionConfig, heldAnswers: readonly HeldAnswer[] = []): ServingReplica {
  return { kind: 'Serving', config, heldAnswers };
}

export function failedReplica(config: CollectionConfig, reason: ErrorFacts, failures: number): FailedReplica {
  return { kind: 'Failed', config, reason, failures };
}

export function closingReplica(): ClosingReplica {
  return { kind: 'Closing' };
}

/** Index files of sealed segments that are not there yet. */
export function missingIndexes(stats: ReplicaStats): MissingIndex[] {
  const sealed = stats.segments.filter((segment) => segment.kind === 'sealed');
  return sealed.flatMap((segment) => segment.missingFields.map((field) => ({ segment: segment.id, field })));
}
