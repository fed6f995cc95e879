/**
 * A port of a reader's thread for peers: their readers ask it for portions of reads. Whoever connects is let in as at the internal port. What the
 * thread cannot answer alone the peer asks the main thread for.
 */

import type { Socket } from 'node:net';
import type { MessagePort } from 'node:worker_threads';
import type { ShownCertificate } from '../../cluster/transport/certified.js';
import type { Hello } from '../../cluster/transport/codec/frames.js';
import type { Entrance, PeerTls } from '../../cluster/transport/entrance.js';
import { PortListener } from '../../cluster/transport/port-listener.js';
import type { PortionQuestion, Reader } from '../../storage/reader/reader.js';
import type { PortionResult } from '../../storage/threads/messages.js';
import { Asker, type AskerHost } from './peer-asker.js';

export interface PeerPortSettings {
  readonly host: string;
  /** 0 for any free one. */
  readonly number: number;
  readonly entrance: Entrance;
}

export type FromPeerPort =
  | { readonly kind: 'listening'; readonly number: number }
  | { readonly kind: 'failed' }
  /** Answered by `judged`: whether who begins a stream with this hello, on a connection that has shown this certificate, may call. */
  | { readonly kind: 'hello'; readonly id: number; readonly hello: Hello; readonly certificate: ShownCertificate }
  | { readonly kind: 'closed' };

export type ToPeerPort =
  | { readonly kind: 'judged'; readonly id: number; readonly isAdmitted: boolean }
  | { readonly kind: 'renew'; readonly tls: PeerTls }
  /** Answered by `closed`. */
  | { readonly kind: 'close' };

/** Connections of peers: each reader of a peer has one. */
const ASKERS_MAX = 1024;

export class PeerPort implements AskerHost {
  readonly #listener: PortListener;
  readonly #askers = new Set<Asker>();
  readonly #judging = new Map<number, (isAdmitted: boolean) => void>();
  #nextId = 1;

  constructor(
    private readonly reader: Pick<Reader, 'answerPeer'>,
    private readonly port: MessagePort,
    private readonly settings: PeerPortSettings,
    /** Monotonic. */
    readonly nowMs: () => number = () => performance.now(),
  ) {
    const users = {
      grpc: (socket: Socket) => socket.destroy(),
      plain: (socket: Socket) => this.#take(socket),
      // The internal port tells of whoever is none of a peer.
      refused: () => {},
      tell: (socket: Socket) => socket.destroy(),
    };
    this.#listener = new PortListener(users, settings.entrance);
    port.on('message', (message: ToPeerPort) => this.#receive(message));
  }

  /** Tells the main thread where peers can connect, or that they cannot. */
  async listen(): Promise<void> {
    const { host, number } = this.settings;
    try {
      this.#post({ kind: 'listening', number: await this.#listener.listen(host, number) });
    } catch {
      this.#post({ kind: 'failed' });
    }
  }

  #receive(message: ToPeerPort): void {
    switch (message.kind) {
      case 'judged':
        this.#judging.get(message.id)?.(message.isAdmitted);
        this.#judging.delete(message.id);
        return;
      case 'renew':
        this.#listener.renew(message.tls);
        return;
      case 'close':
        this.#listener.close();
        for (const asker of this.#askers) asker.end();
        this.#post({ kind: 'closed' });
        this.port.close();
        return;
      default:
        message satisfies never;
    }
  }

  #take(socket: Socket): void {
    if (this.#askers.size >= ASKERS_MAX) {
      socket.destroy();
      return;
    }
    const asker = new Asker(socket, this);
    this.#askers.add(asker);
    socket.once('close', () => this.#askers.delete(asker));
  }

  answer(question: PortionQuestion): PortionResult | null {
    return this.reader.answerPeer(question);
  }

  judge(hello: Hello, certificate: ShownCertificate): Promise<boolean> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#judging.set(id, resolve);
      this.#post({ kind: 'hello', id, hello, certificate });
    });
  }

  #post(message: FromPeerPort): void {
    this.port.postMessage(message);
  }
}
