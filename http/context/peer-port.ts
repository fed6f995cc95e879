/**
 * A port of a reader's thread for peers: they ask it for portions of reads, over the streams of calls that they have with the internal port. Whoever
 * connects is let in as there. What the thread cannot answer alone is refused, and the peer asks the main thread.
 */

import type { Socket } from 'node:net';
import type { MessagePort } from 'node:worker_threads';
import { CallsServer } from '../../cluster/transport/call-stream.js';
import { certificateOf, type ShownCertificate } from '../../cluster/transport/certified.js';
import { packReply, unpackCall } from '../../cluster/transport/codec/calls.js';
import type { Hello } from '../../cluster/transport/codec/frames.js';
import type { Entrance, PeerTls } from '../../cluster/transport/entrance.js';
import { PLAIN_PREFACE, plainStream } from '../../cluster/transport/plain-stream.js';
import { PortListener } from '../../cluster/transport/port-listener.js';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import type { Reader } from '../../storage/reader/reader.js';
import { PORTION_BYTES_MAX } from './peer-streams.js';

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

/** Calls of one turn share a frame, which is full from 1 MB on. */
const FRAME_BYTES_MAX = (1 << 20) + 2 * PORTION_BYTES_MAX;

/** Whoever may call is judged anew after so long: addresses of members, and so the certificates that name them, change. */
const JUDGED_MS = 1000;

interface Judged {
  readonly isAdmitted: boolean;
  readonly atMs: number;
}

export class PeerPort {
  readonly #listener: PortListener;
  readonly #calls = new CallsServer((hello, packed, certificate) => this.#serve(hello, packed, certificate));
  /** By the hello of a stream: what was judged last, or is being judged. */
  readonly #judged = new WeakMap<Hello, Judged | Promise<Judged>>();
  readonly #judging = new Map<number, (isAdmitted: boolean) => void>();
  readonly #askMain = packReply({ kind: 'error', error: errorFacts(new TroupeError('unavailable', 'this reader cannot answer alone')) });
  #nextId = 1;

  constructor(
    private readonly reader: Pick<Reader, 'answerPeer'>,
    private readonly port: MessagePort,
    private readonly settings: PeerPortSettings,
    /** Monotonic. */
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    const users = {
      grpc: (socket: Socket) => socket.destroy(),
      plain: (socket: Socket) => this.#calls.accept((events) => acceptedStream(socket, events), certificateOf(socket)),
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
        this.#calls.close();
        this.#listener.cut();
        this.#post({ kind: 'closed' });
        this.port.close();
        return;
      default:
        message satisfies never;
    }
  }

  async #serve(hello: Hello, packed: Uint8Array, certificate: ShownCertificate): Promise<Uint8Array> {
    const known = this.#judged.get(hello);
    const isFresh = known !== undefined && (known instanceof Promise || (known.isAdmitted && this.nowMs() - known.atMs < JUDGED_MS));
    const judged = isFresh ? known : this.#judge(hello, certificate);
    const { isAdmitted } = judged instanceof Promise ? await judged : judged;
    return (isAdmitted ? this.#answer(packed) : null) ?? this.#askMain;
  }

  #answer(packed: Uint8Array): Uint8Array | null {
    try {
      const call = unpackCall(packed);
      if (call?.kind !== 'read' || call.measured || call.fence !== undefined) return null;
      const answer = this.reader.answerPeer(call);
      return answer && packReply({ kind: 'answered', ...answer, usage: null });
    } catch {
      return null;
    }
  }

  /** A node that is not a member yet may be one at the next call. */
  #judge(hello: Hello, certificate: ShownCertificate): Promise<Judged> {
    const id = this.#nextId++;
    const judging = new Promise<Judged>((resolve) => {
      this.#judging.set(id, (isAdmitted) => {
        const judged = { isAdmitted, atMs: this.nowMs() };
        this.#judged.set(hello, judged);
        resolve(judged);
      });
    });
    this.#judged.set(hello, judging);
    this.#post({ kind: 'hello', id, hello, certificate });
    return judging;
  }

  #post(message: FromPeerPort): void {
    this.port.postMessage(message);
  }
}

function acceptedStream(socket: Socket, events: Parameters<Parameters<CallsServer['accept']>[0]>[0]) {
  const options = { bytesMax: FRAME_BYTES_MAX, preface: PLAIN_PREFACE };
  return plainStream(socket, options, { ...events, refused: (reason) => events.ended(reason) });
}
