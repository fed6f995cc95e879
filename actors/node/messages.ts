/** Messages and effects of the node actor. Collections are named by their folder. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { AliasAction, AliasMap } from '../../protocols/model/alias.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { NewCollection } from '../collection/messages.js';
import type { Adoption, Belonging, CarriedOut, Desired, LocalData } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { Holding } from './reconcile.js';

export type NodeMessage =
  /** The folders of the collections on disk, after a check of their databases. */
  | {
      readonly kind: 'scanned';
      readonly folders: readonly string[];
      /** Readable configurations, by folder; null outside of a cluster. */
      readonly holdings: ReadonlyMap<string, Holding> | null;
      readonly aliases: AliasMap;
    }
  | { readonly kind: 'scanFailed'; readonly error: ErrorFacts }
  /** Answered when every collection is open or has failed to open. */
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
  /** The aliases of `saveAliases` are on disk. */
  | { readonly kind: 'aliasesSaved' }
  | { readonly kind: 'aliasesNotSaved'; readonly error: ErrorFacts }
  | { readonly kind: 'collectionOpened'; readonly folder: string }
  /** shards: those that do not serve; null: none does. */
  | { readonly kind: 'collectionDied'; readonly folder: string; readonly error: ErrorFacts; readonly shards: readonly number[] | null }
  | { readonly kind: 'createFailed'; readonly folder: string; readonly error: ErrorFacts }
  | { readonly kind: 'collectionDeleted'; readonly folder: string }
  | { readonly kind: 'collectionClosed'; readonly folder: string }
  /** From consensus: the collections that this node should have from now on, in place of the earlier ones. */
  | { readonly kind: 'desire'; readonly desired: Desired }
  /**
   * From consensus, which founds a cluster: these collections belong to it. Answered when that is on disk, so before the cluster's first
   * state is written: after a crash in between the node founds a cluster again.
   */
  | { readonly kind: 'adopt'; readonly adoption: Adoption; readonly replyTo: ReplyTo<boolean> }
  /** The change of `reshapeCollection` is made, or has failed. */
  | { readonly kind: 'reshaped'; readonly folder: string }
  | { readonly kind: 'reshapeFailed'; readonly folder: string; readonly error: ErrorFacts }
  /** The files of `takeAway` are removed, or could not be. */
  | { readonly kind: 'takenAway'; readonly folder: string }
  | { readonly kind: 'takeAwayFailed'; readonly folder: string; readonly error: ErrorFacts }
  /** The pause of a failed folder is over. */
  | { readonly kind: 'retry'; readonly folder: string }
  /** It is time to report failures that came or went. */
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
  /** Shows the collection to requests. */
  | { readonly kind: 'list'; readonly folder: string }
  /** Hides the collection from requests and passes it the deletion, which it answers. replyTo: null if no caller waits. */
  | { readonly kind: 'deleteCollection'; readonly folder: string; readonly replyTo: ReplyTo<boolean> | null }
  /** Has the collection change towards the desired state. */
  | { readonly kind: 'reshapeCollection'; readonly folder: string; readonly config: CollectionConfig; readonly belonging: Belonging }
  /** Hides the collection from requests and closes it. */
  | { readonly kind: 'retireCollection'; readonly folder: string }
  /** Removes the files of a collection whose actor has ended. keep: moves them where no start finds them, instead of deleting them. */
  | { readonly kind: 'takeAway'; readonly folder: string; readonly keep: boolean; readonly reason: string }
  | { readonly kind: 'retryLater'; readonly folder: string; readonly attempt: number }
  | { readonly kind: 'startConsensus'; readonly local: LocalData }
  /** Asks for `tellNow`. */
  | { readonly kind: 'tellLater' }
  | { readonly kind: 'tellCarriedOut'; readonly carriedOut: CarriedOut }
  /** The node continues without consensus. */
  | { readonly kind: 'loseConsensus'; readonly error: ErrorFacts }
  | { readonly kind: 'loseTransfers'; readonly error: ErrorFacts }
  | { readonly kind: 'saveAliases'; readonly aliases: AliasMap }
  /** Shows the aliases to requests and the engine. */
  | { readonly kind: 'announceAliases'; readonly aliases: AliasMap }
  | { readonly kind: 'closeCollection'; readonly folder: string }
  /** Has the engine close the files of a collection whose actor has ended. */
  | { readonly kind: 'abandonCollection'; readonly folder: string; readonly error: ErrorFacts }
  /** Removes the files of a collection whose actor has ended. */
  | { readonly kind: 'removeFiles'; readonly folder: string; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean>; readonly answer: boolean }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<boolean>; readonly error: ErrorFacts };
