/** What the node actor hears and what it causes. Collections go by their folder. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction, AliasMap } from '../../protocols/model/alias.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { NewCollection } from '../collection/messages.js';
import type { Adoption, Belonging, CarriedOut, Desired, LocalData } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { Holding } from './reconcile.js';

export type NodeMessage =
  /** Folders of the collections on disk; their databases have been looked at. */
  | {
      readonly kind: 'scanned';
      readonly folders: readonly string[];
      /** Configurations that can be read, by folder; null outside of a cluster. */
      readonly holdings: ReadonlyMap<string, Holding> | null;
      readonly aliases: AliasMap;
    }
  | { readonly kind: 'scanFailed'; readonly error: ErrorFacts }
  /** Answered when every collection is open or known not to be. */
  | { readonly kind: 'awaitReady'; readonly replyTo: ReplyTo<boolean> }
  | {
      readonly kind: 'create';
      readonly name: string;
      readonly folder: string;
      readonly config: CollectionConfig;
      readonly replyTo: ReplyTo<boolean>;
    }
  | { readonly kind: 'delete'; readonly folder: string; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'changeAliases'; readonly actions: readonly AliasAction[]; readonly replyTo: ReplyTo<boolean> }
  /** What `saveAliases` asked for is on disk. */
  | { readonly kind: 'aliasesSaved' }
  | { readonly kind: 'aliasesNotSaved'; readonly error: ErrorFacts }
  | { readonly kind: 'collectionOpened'; readonly folder: string }
  | { readonly kind: 'collectionDied'; readonly folder: string; readonly error: ErrorFacts }
  | { readonly kind: 'createFailed'; readonly folder: string; readonly error: ErrorFacts }
  | { readonly kind: 'collectionDeleted'; readonly folder: string }
  | { readonly kind: 'collectionClosed'; readonly folder: string }
  /** Consensus: what this node should have from now on, in the place of what was desired before. */
  | { readonly kind: 'desire'; readonly desired: Desired }
  /**
   * Consensus, which founds a cluster: these collections are its. Answered when that is on disk, so before the cluster's
   * first state is written: a crash in between leaves a node that founds anew.
   */
  | { readonly kind: 'adopt'; readonly adoption: Adoption; readonly replyTo: ReplyTo<boolean> }
  /** The change that `reshapeCollection` asked for is made, or not. */
  | { readonly kind: 'reshaped'; readonly folder: string }
  | { readonly kind: 'reshapeFailed'; readonly folder: string; readonly error: ErrorFacts }
  /** The files that `takeAway` was about are gone, or still there. */
  | { readonly kind: 'takenAway'; readonly folder: string }
  | { readonly kind: 'takeAwayFailed'; readonly folder: string; readonly error: ErrorFacts }
  /** Time to try again what failed. */
  | { readonly kind: 'retry'; readonly folder: string }
  /** Time to tell of failures that came or went. */
  | { readonly kind: 'tellNow' }
  /** Consensus crashed too often and is stopped. */
  | { readonly kind: 'consensusGaveUp'; readonly error: ErrorFacts }
  /** The supervisor of transfers crashed too often and is stopped. */
  | { readonly kind: 'transfersGaveUp'; readonly error: ErrorFacts }
  /** The collection crashed too often and is stopped. */
  | { readonly kind: 'collectionGaveUp'; readonly folder: string; readonly error: ErrorFacts }
  | { readonly kind: 'close'; readonly replyTo: ReplyTo<boolean> };

export type NodeEffect =
  | { readonly kind: 'scan' }
  | { readonly kind: 'loadCollection'; readonly folder: string }
  | { readonly kind: 'createCollection'; readonly name: string; readonly folder: string; readonly create: NewCollection }
  /** Let the doors find it. */
  | { readonly kind: 'list'; readonly folder: string }
  /** Hide it from the doors and hand it the request, which it answers; null: nobody waits. */
  | { readonly kind: 'deleteCollection'; readonly folder: string; readonly replyTo: ReplyTo<boolean> | null }
  /** Asks for a change towards what the cluster wants. */
  | { readonly kind: 'reshapeCollection'; readonly folder: string; readonly config: CollectionConfig; readonly belonging: Belonging }
  /** Hide it from the doors and close it. */
  | { readonly kind: 'retireCollection'; readonly folder: string }
  /** Its actor is gone, and its files follow: for good, or where no start finds them (`keep`). */
  | { readonly kind: 'takeAway'; readonly folder: string; readonly keep: boolean; readonly reason: string }
  | { readonly kind: 'retryLater'; readonly folder: string; readonly attempt: number }
  | { readonly kind: 'startConsensus'; readonly local: LocalData }
  /** Asks for `tellNow`. */
  | { readonly kind: 'tellLater' }
  | { readonly kind: 'tellCarriedOut'; readonly carriedOut: CarriedOut }
  /** The node goes on without consensus. */
  | { readonly kind: 'loseConsensus'; readonly error: ErrorFacts }
  | { readonly kind: 'loseTransfers'; readonly error: ErrorFacts }
  | { readonly kind: 'saveAliases'; readonly aliases: AliasMap }
  /** Let the doors and the engine know the aliases. */
  | { readonly kind: 'announceAliases'; readonly aliases: AliasMap }
  | { readonly kind: 'closeCollection'; readonly folder: string }
  /** Its actor is gone: the engine lets its files go. */
  | { readonly kind: 'abandonCollection'; readonly folder: string; readonly error: ErrorFacts }
  /** Its actor is gone, and so are its files. */
  | { readonly kind: 'removeFiles'; readonly folder: string; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean>; readonly answer: boolean }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<boolean>; readonly error: ErrorFacts };
