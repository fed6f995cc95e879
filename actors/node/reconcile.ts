/** Decides the next move for a folder: the existing collection × the desired one. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { folderName } from '../../storage/disk/folder-name.js';
import type { NewCollection } from '../collection/messages.js';
import type { Belonging, Desired, DesiredCollection } from '../context/desired.js';
import type { CollectionPhase } from './state.js';

/** The content of a collection's `config.json`. */
export interface Holding {
  readonly name: string;
  readonly config: CollectionConfig;
  /** Null if it was made outside of a cluster. */
  readonly belonging: Belonging | null;
}

/** The collection that this node has in a folder. */
export interface There {
  readonly phase: CollectionPhase;
  /** Null if its `config.json` cannot be read. */
  readonly holding: Holding | null;
}

export interface Wanted extends DesiredCollection {
  readonly name: string;
}

/** A move that makes one folder as desired, or brings it nearer: the next look finds the rest. */
export type Move =
  | { readonly kind: 'create'; readonly name: string; readonly create: NewCollection }
  | { readonly kind: 'reshape'; readonly config: CollectionConfig; readonly belonging: Belonging }
  /** The cluster has deleted it. */
  | { readonly kind: 'delete' }
  /** The collection does not belong to this cluster, so it is moved aside instead of deleted. */
  | { readonly kind: 'setAside'; readonly reason: string };

export type Finding =
  /** The folder is as desired. */
  | { readonly kind: 'done' }
  | { readonly kind: 'move'; readonly move: Move }
  /** The folder is between two states and will be looked at again. */
  | { readonly kind: 'wait' }
  /** No move helps. */
  | Fault;

export interface Fault {
  readonly kind: 'fault';
  readonly detail: string;
  readonly of: FaultOf;
}

/** What a failure is of: the whole collection; all its replicas, while everything else is as desired; or those of these shards. */
export type FaultOf = 'collection' | 'replicas' | readonly number[];

const DONE: Finding = { kind: 'done' };
const WAIT: Finding = { kind: 'wait' };
const GAVE_UP = 'it crashed too often and is stopped until the node starts again';

/** The desired collections, by folder. */
export type WantedByFolder = ReadonlyMap<string, Wanted>;

/**
 * The desired collections by folder, and the folders whose desired collection has changed. A change comes with all of up to ten thousand
 * collections, so unchanged values are skipped. before: the previous desired state and its result.
 */
export function wantedByFolder(
  desired: Desired,
  before: { readonly desired: Desired | null; readonly wanted: WantedByFolder },
): { readonly wanted: WantedByFolder; readonly changed: ReadonlySet<string> } {
  const known = before.desired?.collections;
  const wanted = new Map(before.wanted);
  const changed = new Set<string>();
  for (const name of known?.keys() ?? []) {
    if (desired.collections.has(name)) continue;
    changed.add(folderName(name));
    wanted.delete(folderName(name));
  }
  for (const [name, collection] of desired.collections) {
    if (known?.get(name) === collection) continue;
    changed.add(folderName(name));
    wanted.set(folderName(name), { ...collection, name });
  }
  return { wanted, changed };
}

/** The finding for one folder. there: null if no collection exists. wanted: null if none is desired. */
export function reconcile(there: There | null, wanted: Wanted | null, desired: Desired): Finding {
  if (there === null) return wanted === null ? DONE : { kind: 'move', move: creation(wanted, desired) };
  const { holding, phase } = there;
  if (phase.kind === 'Creating' || phase.kind === 'Deleting') return WAIT;
  if (holding === null) {
    if (phase.kind === 'Opening') return WAIT;
    if (wanted === null && phase.kind !== 'Active') return setAside('its configuration cannot be read');
    return {
      kind: 'fault',
      of: 'collection',
      detail: `the configuration of this node's copy cannot be read: move its folder away and start the node again for an empty one`,
    };
  }
  const { belonging } = holding;
  if (belonging === null) return setAside('it was made outside of this cluster');
  if (belonging.clusterId !== desired.clusterId) return setAside('it belongs to another cluster');
  if (belonging.peerId !== desired.peerId) return setAside('this node held it as another peer, which was removed');
  // After a crash, the entry that made it is not known again yet. It was committed, so it will be.
  if (belonging.uid > desired.index) return DONE;
  if (wanted === null || wanted.uid !== belonging.uid) return { kind: 'move', move: { kind: 'delete' } };
  if (belonging.index <= desired.index && !isMet(belonging, wanted)) return change(phase, wanted, desired);
  return standing(phase);
}

/** Whether a collection's `config.json` is as desired. */
function isMet(belonging: Belonging, wanted: Wanted): boolean {
  const { revision, shards, since } = belonging;
  return revision === wanted.revision && shards.join() === wanted.shards.join() && since?.join() === wanted.since.join();
}

function change(phase: CollectionPhase, wanted: Wanted, desired: Desired): Finding {
  // The collection's actor is stopped for good, so it cannot make the change; a start of the node brings it back.
  if (phase.kind === 'Abandoned') return { kind: 'fault', detail: GAVE_UP, of: 'collection' };
  return { kind: 'move', move: { kind: 'reshape', config: wanted.config, belonging: belongingOf(wanted, desired) } };
}

/** The finding for a collection that is as desired, by its phase. */
function standing(phase: CollectionPhase): Finding {
  return faultOfReplicas(phase) ?? (phase.kind === 'Active' ? DONE : WAIT);
}

/** Replicas of a collection that do not serve, or not yet; null if there are none. */
export function faultOfReplicas(phase: CollectionPhase): Fault | null {
  switch (phase.kind) {
    case 'Opening':
      return { kind: 'fault', detail: 'it is being opened', of: 'replicas' };
    case 'Dead':
      return { kind: 'fault', detail: phase.error.detail, of: phase.shards ?? 'replicas' };
    case 'Abandoned':
      return { kind: 'fault', detail: GAVE_UP, of: 'replicas' };
    default:
      return null;
  }
}

function creation(wanted: Wanted, desired: Desired): Move {
  return { kind: 'create', name: wanted.name, create: { config: wanted.config, belonging: belongingOf(wanted, desired) } };
}

function belongingOf({ uid, revision, shards, since }: Wanted, { clusterId, peerId, index }: Desired): Belonging {
  return { clusterId, peerId, uid, revision, shards, since, index };
}

function setAside(reason: string): Finding {
  return { kind: 'move', move: { kind: 'setAside', reason } };
}
