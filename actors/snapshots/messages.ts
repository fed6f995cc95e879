/** What the actor of snapshots hears and what it causes. */

import type { ReplyTo } from '../runtime/behaviour.js';

/** A work on snapshots. */
export interface SnapshotWork {
  readonly kind: 'create' | 'restore';
  /** The collection whose files it reads or replaces; null for all of them. */
  readonly collection: string | null;
}

export type SnapshotsMessage =
  /** Asks for a turn. Answered with the work's number when it may begin. */
  | { readonly kind: 'begin'; readonly work: SnapshotWork; readonly replyTo: ReplyTo<number> }
  | { readonly kind: 'progress'; readonly id: number; readonly doneBytes: number; readonly totalBytes: number }
  /** error: null if the work has succeeded. */
  | { readonly kind: 'ended'; readonly id: number; readonly error: string | null };

export type SnapshotsEffect = { readonly kind: 'admit'; readonly id: number; readonly replyTo: ReplyTo<number> };
