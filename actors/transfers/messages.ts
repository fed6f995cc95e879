/** What the supervisor of a node's transfers hears and what it causes. */

import type { MigrationTask } from '../../cluster/apply/migration.js';
import type { HandOver } from '../../cluster/plans/leadership.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { GivingBack } from '../../cluster/state/giving-back.js';
import type { ClusterState } from '../../cluster/state/state.js';
import type { Comparison } from '../../cluster/transfer/comparing.js';
import type { IncomingFiles, RunOutcome, TransferRun } from '../../cluster/transfer/runs.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';

/** Why a lead goes to another peer: its peer is drained, or its disk is full, or others lead less. */
export type WhyHandedOver = 'leaving' | 'full' | 'spread';

/** The cluster as this node sees it at a tick. */
export interface Sight {
  /** Null until it is known, and once this node is part of it no more. */
  readonly agreed: ClusterState | null;
  readonly self: PeerId;
  /** This node leads consensus: it starts what nobody asks for. */
  readonly leads: boolean;
  /** Peers that it is connected with, and itself. */
  readonly reachable: ReadonlySet<PeerId>;
  /** Peers whose disk is full. */
  readonly full: ReadonlySet<PeerId>;
  /** Leads of this node, whose files are gone. */
  readonly givingBack: readonly GivingBack[];
  /** Names of comparisons that were asked for and have not begun, oldest first. */
  readonly asked: ReadonlySet<string>;
}

export type TransfersMessage =
  | { readonly kind: 'tick' }
  | { readonly kind: 'saw'; readonly sight: Sight }
  /** Healing that was proposed is agreed, or refused. */
  | { readonly kind: 'proposed' }
  | {
      readonly kind: 'comparisonEnded';
      readonly comparison: Comparison;
      /** Buckets that differed, points that were changed because of it. */
      readonly differences: number;
      readonly repaired: number;
      readonly error: ErrorFacts | null;
    }
  /** Null: it is agreed. */
  | { readonly kind: 'handedOver'; readonly handOver: HandOver; readonly why: WhyHandedOver; readonly error: ErrorFacts | null }
  | { readonly kind: 'gaveBack'; readonly lead: GivingBack; readonly error: ErrorFacts | null }
  /** The actor of a transfer or a migration crashed too often and is stopped. */
  | { readonly kind: 'childGaveUp'; readonly name: string; readonly error: ErrorFacts };

export type TransfersEffect =
  | { readonly kind: 'tickLater' }
  /** A `saw`. */
  | { readonly kind: 'look' }
  | { readonly kind: 'startRun'; readonly name: string; readonly run: TransferRun }
  /** release: its target must not be waited for any more. */
  | {
      readonly kind: 'stopRun';
      readonly name: string;
      readonly run: TransferRun;
      readonly outcome: RunOutcome;
      readonly release: boolean;
    }
  | { readonly kind: 'startMigration'; readonly task: MigrationTask }
  /** error: with which its actor crashed too often. */
  | { readonly kind: 'stopMigration'; readonly task: MigrationTask; readonly error: ErrorFacts | null }
  /** Nobody waits for them any more. */
  | { readonly kind: 'discardFiles'; readonly files: IncomingFiles }
  /** In order; a `proposed` at the end. */
  | { readonly kind: 'propose'; readonly operations: readonly ClusterCommand[] }
  | { readonly kind: 'compare'; readonly comparison: Comparison }
  /** Comparisons that were asked for, and that are no more this node's to make. */
  | { readonly kind: 'forgetAsked'; readonly names: readonly string[] }
  /** A `handedOver` at the end. */
  | { readonly kind: 'handOver'; readonly handOver: HandOver; readonly why: WhyHandedOver }
  /** A `gaveBack` at the end. */
  | { readonly kind: 'giveBack'; readonly lead: GivingBack }
  | { readonly kind: 'tellGivenBack'; readonly lead: GivingBack; readonly error: ErrorFacts | null }
  | {
      readonly kind: 'countHandOver';
      readonly handOver: HandOver;
      readonly why: WhyHandedOver;
      readonly error: ErrorFacts | null;
    }
  | { readonly kind: 'count'; readonly ended: Extract<TransfersMessage, { kind: 'comparisonEnded' }> };
