/** What this node does for its peers: their calls find the replica that they are for. */

import type { AnswerCall, PeerCalls } from '../../cluster/data-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { NodeServices } from '../node/services.js';
import type { CollectionEntry, NodeView } from '../node/view.js';
import { receiveFiles } from '../transfer/receive-files.js';

/** Of a node of its own. */
export const NO_CALLS: PeerCalls = {
  call: (peer) => Promise.reject(new TroupeError('unavailable', `this node is part of no cluster, and knows no peer ${peer}`)),
};

/** Errors: `conflict` when the replica is not here, or not yet: nothing was done; and what the replica answers. */
export function answerCalls(view: NodeView, services: NodeServices): AnswerCall {
  return async (from, call) => {
    const { collection, uid } = call.kind === 'read' ? call : call.shard;
    const entry = entryOf(view, collection, uid);
    if (call.kind === 'putFile' || call.kind === 'installFiles') return receiveFiles(services, entry, call);
    throw new TroupeError('unsupported', `peer ${from} calls for ${call.kind}, which this release does not carry out`);
  };
}

function entryOf(view: NodeView, collection: string, uid: number): CollectionEntry {
  const entry = view.collections.get(collection);
  if (entry?.belonging?.uid === uid) return entry;
  throw new TroupeError('conflict', `collection ${collection} (${uid}) is not on this node, or not yet`);
}
