/** Transports over real connections on this machine, with listeners that keep what they hear. */

import type { AnswerCall, DataAnswer, DataCall } from '../../../cluster/data-messages.js';
import type { PeerMessage, PeerReply, PeerRequest } from '../../../cluster/peer-messages.js';
import type { TransportListener } from '../../../cluster/ports.js';
import { type ListeningTransport, openPeerTransport, type PeerTransportOptions } from '../../../cluster/transport/open.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { PeerId } from '../../../protocols/model/cluster.js';

export const CLUSTER = 'a-cluster';

export class Heard implements TransportListener {
  readonly messages: { from: PeerId; message: PeerMessage }[] = [];
  readonly batches: number[] = [];
  readonly changes: string[] = [];
  readonly lost: PeerId[] = [];
  reply: (request: PeerRequest, address: string) => Promise<PeerReply> = () => Promise.reject(new TroupeError('notFound', 'nothing here'));
  answer: AnswerCall = () => Promise.reject(new TroupeError('notFound', 'no replica here'));
  private wake: (() => void)[] = [];

  received(from: PeerId, messages: readonly PeerMessage[]): void {
    this.batches.push(messages.length);
    for (const message of messages) this.messages.push({ from, message });
    this.changed();
  }

  connectionChanged(peer: PeerId, connected: boolean): void {
    this.changes.push(`${connected ? '+' : '-'}${peer}`);
    this.changed();
  }

  unreachable(peer: PeerId): void {
    this.lost.push(peer);
    this.changed();
  }

  requested(request: PeerRequest, address: string): Promise<PeerReply> {
    return this.reply(request, address);
  }

  called(from: PeerId, call: DataCall): Promise<DataAnswer> {
    return this.answer(from, call);
  }

  /** Resolves as soon as it holds; looked at whenever something is heard, and now and then. */
  async until(what: string, holds: () => boolean, timeoutMs = 10_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 20);
        this.wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Indexes of `applied` messages, in the order of their arrival. */
  applied(): number[] {
    return this.messages.flatMap(({ message }) => (message.kind === 'applied' ? [message.index] : []));
  }

  private changed(): void {
    for (const wake of this.wake.splice(0)) wake();
  }
}

export interface TestPeer {
  readonly id: PeerId;
  readonly transport: ListeningTransport;
  readonly heard: Heard;
  readonly uri: string;
}

/** A started transport on a free port. */
export async function peer(
  id: PeerId,
  options: Partial<PeerTransportOptions> & { readonly clusterId?: string | null } = {},
): Promise<TestPeer> {
  const { clusterId = CLUSTER, ...rest } = options;
  const transport = await openPeerTransport({ host: '127.0.0.1', port: 0, release: '0.1.0', ...rest });
  const heard = new Heard();
  await transport.start({ peerId: id, clusterId: () => clusterId }, heard);
  return { id, transport, heard, uri: `http://127.0.0.1:${transport.port}` };
}

/** Makes all of them peers of each other and waits for their streams. */
export async function connect(...peers: readonly TestPeer[]): Promise<void> {
  const uris = new Map(peers.map(({ id, uri }) => [id, uri]));
  for (const { transport } of peers) transport.setPeers(uris);
  for (const one of peers) {
    await one.heard.until(`${one.id} is connected`, () => peers.every(({ id }) => id === one.id || isConnected(one, id)));
  }
}

export function isConnected(from: TestPeer, to: PeerId): boolean {
  return from.transport.connections().get(to)?.connected === true;
}

export async function closeAll(...peers: readonly TestPeer[]): Promise<void> {
  await Promise.all(peers.map(({ transport }) => transport.close()));
}

export function applied(index: number): PeerMessage {
  return { kind: 'applied', index };
}
