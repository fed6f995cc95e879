/** What may be read without asking the main thread, as it is after the changes that have been told so far: in the main thread, and in each reader's. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { OwnCollection, OwnReads, OwnReadsChange, PeerCard, SpreadCollection } from './messages.js';

export class KnownReads implements OwnReads {
  readonly collections = new Map<string, OwnCollection | SpreadCollection>();
  readonly peers = new Map<PeerId, PeerCard>();

  apply({ collections, isWhole, peers }: OwnReadsChange): void {
    if (isWhole) {
      this.collections.clear();
      this.peers.clear();
    }
    for (const [name, own] of collections) {
      if (own === null) this.collections.delete(name);
      else this.collections.set(name, own);
    }
    for (const [peer, card] of peers) this.peers.set(peer, card);
  }

  /** All of it, for who knows nothing yet. */
  whole(): OwnReadsChange {
    return { isWhole: true, collections: this.collections, peers: this.peers };
  }
}
