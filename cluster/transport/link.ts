/** One peer: calls it until there is a stream, keeps one stream, sends what waits, and notices when the other side is gone. */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { PeerMessage } from '../peer-messages.js';
import type { PeerConnection, TransportListener } from '../ports.js';
import { channelTarget } from './address.js';
import { decodeFrame, EMPTY_FRAME, encodeHello, encodeMessages, type Hello } from './codec/frames.js';
import type { Way } from './entrance.js';
import { backOffMs, type Established, HIGHER_WAITS_MS, judgeHello, type OwnSide, takesOver } from './handshake.js';
import { FRAME_BYTES_MAX, OutgoingQueue } from './queue.js';
import { dialStream, type FrameStream } from './streams.js';

/** What links share. */
export interface LinkHost {
  own(): OwnSide;
  /** This node's first frame to a peer. */
  helloTo(peer: PeerId): Hello;
  way(): Way;
  readonly listener: TransportListener;
  readonly dateMs: () => number;
  /** 0 to 1. */
  readonly random: () => number;
  /** The stream of a link without address has ended: nobody will call again. */
  deserted(link: PeerLink): void;
  /** The process at the other end is gone, or was talked to for the last time. */
  disconnected(peer: PeerId): void;
}

/** A side that says nothing for so many ticks is gone. Ticks are counted, not time: a thread that was busy has not listened. */
const SILENT_TICKS_MAX = 8;
/** After so many ticks without a frame an empty one is sent. */
const QUIET_TICKS_MAX = 2;
export const LINK_TICK_MS = 500;
export const HANDSHAKE_MS = 5000;

export interface Reachable {
  readonly uri: string;
  /** Of the other side's process. */
  readonly session: number;
}

interface Attached extends Established {
  readonly stream: FrameStream;
  readonly version: number;
}

export class PeerLink {
  private uri: string | null = null;
  private current: Attached | null = null;
  private dialing: FrameStream | null = null;
  private timer: NodeJS.Timeout | null = null;
  private failedDials = 0;
  private readonly queue = new OutgoingQueue();
  private writing = false;
  private flushing = false;
  private silentTicks = 0;
  private quietTicks = 0;
  private failures = 0;
  private lastError: string | null = null;
  private lastErrorMs: number | null = null;
  private lastVersion: number | null = null;
  private closed = false;

  constructor(
    readonly peerId: PeerId,
    private readonly host: LinkHost,
  ) {}

  /** Where to call the process that there is a stream with; null without one, or without an address. */
  get reachable(): Reachable | null {
    return this.current === null || this.uri === null ? null : { uri: this.uri, session: this.current.session };
  }

  /** From now on it is called there; null: only it can call. A stream that is there stays. */
  setUri(uri: string | null): void {
    if (uri === this.uri) return;
    this.uri = uri;
    this.failedDials = 0;
    if (this.current === null && this.dialing === null) this.dialIn(this.waits());
  }

  send(messages: readonly PeerMessage[]): void {
    const dropped = this.current === null ? messages.length : this.queue.push(messages);
    if (dropped > 0) this.drop(dropped, this.current === null ? null : 'its queue is full');
    if (this.current === null || this.flushing) return;
    this.flushing = true;
    // Whatever else is sent in this turn joins the frame.
    queueMicrotask(() => {
      this.flushing = false;
      this.flush();
    });
  }

  /** A stream whose handshake went well. */
  adopt(stream: FrameStream, hello: Hello, version: number, dialer: PeerId): void {
    const next: Attached = { stream, version, session: hello.session, dialer };
    const before = this.current;
    if (this.closed || (before !== null && !takesOver(next, before, this.host.own().peerId, this.peerId))) {
      stream.close(null);
      return;
    }
    this.current = next;
    this.lastVersion = version;
    this.failedDials = 0;
    this.silentTicks = 0;
    this.stopTimer();
    before?.stream.close(null);
    if (this.writing) this.tellUnreachable();
    this.writing = false;
    if (before !== null && before.session !== next.session) this.host.disconnected(this.peerId);
    if (before === null) this.host.listener.connectionChanged(this.peerId, true);
    this.flush();
  }

  /** A frame of a stream after its hello. */
  received(stream: FrameStream, bytes: Uint8Array): void {
    if (this.current?.stream !== stream) return;
    this.silentTicks = 0;
    const { peerId } = this;
    if (bytes.length > FRAME_BYTES_MAX) {
      this.breakOff(`it has sent a frame of ${bytes.length} bytes, and ${FRAME_BYTES_MAX} are the most`);
      return;
    }
    let messages: readonly PeerMessage[];
    try {
      ({ messages } = decodeFrame(bytes, { from: peerId, to: this.host.own().peerId }));
    } catch (error) {
      this.breakOff(`it has sent what is no frame: ${(error as Error).message}`);
      return;
    }
    if (messages.length > 0) this.host.listener.received(peerId, messages);
  }

  /** Its stream has ended. */
  ended(stream: FrameStream, reason: string): void {
    if (this.current?.stream === stream) this.lose(reason);
  }

  /** Each TICK_MS. */
  tick(): void {
    if (this.current === null) return;
    if (++this.silentTicks >= SILENT_TICKS_MAX) this.breakOff(`nothing was heard of it for ${(SILENT_TICKS_MAX * LINK_TICK_MS) / 1000} s`);
    else if (++this.quietTicks >= QUIET_TICKS_MAX && !this.writing) this.write(EMPTY_FRAME);
  }

  /** Why messages don't arrive. */
  note(error: string): void {
    this.lastError = error;
    this.lastErrorMs = this.host.dateMs();
  }

  connection(): PeerConnection {
    return {
      connected: this.current !== null,
      failures: this.failures,
      lastError: this.lastError,
      lastErrorMs: this.lastErrorMs,
      protocolVersion: this.lastVersion,
      queued: this.queue.size,
    };
  }

  /** Nothing is heard of it any more; what waits is still sent. */
  cutOff(): void {
    if (this.closed) return;
    this.flush();
    this.closed = true;
    this.stopTimer();
    this.dialing?.close(null);
    this.dialing = null;
    const { current } = this;
    this.current = null;
    if (current === null) return;
    this.sendRest(current.stream);
    this.host.disconnected(this.peerId);
    this.host.listener.connectionChanged(this.peerId, false);
  }

  private sendRest(stream: FrameStream): void {
    for (let frame = this.queue.takeFrame(); frame.length > 0; frame = this.queue.takeFrame())
      stream.write(encodeMessages(frame), () => {});
    stream.close('this peer is not talked to any more');
  }

  private flush(): void {
    if (this.writing || this.current === null) return;
    const frame = this.queue.takeFrame();
    if (frame.length > 0) this.write(encodeMessages(frame));
  }

  private write(bytes: Uint8Array): void {
    const { stream } = this.current as Attached;
    this.writing = true;
    this.quietTicks = 0;
    stream.write(bytes, () => {
      if (this.current?.stream !== stream) return;
      this.writing = false;
      this.failures = 0;
      this.lastError = null;
      this.lastErrorMs = null;
      this.flush();
    });
  }

  /** reason: null keeps what is known. */
  private drop(count: number, reason: string | null): void {
    this.failures += count;
    if (reason !== null || this.lastError === null) this.note(reason ?? 'no connection yet');
    this.tellUnreachable();
  }

  private untold = true;

  /** Later: whoever is sending shall not be called back meanwhile. */
  private tellUnreachable(): void {
    if (!this.untold) return;
    this.untold = false;
    queueMicrotask(() => {
      this.untold = true;
      if (!this.closed) this.host.listener.unreachable(this.peerId);
    });
  }

  private breakOff(reason: string): void {
    this.current?.stream.close(reason);
    this.lose(reason);
  }

  private lose(reason: string): void {
    this.current = null;
    const lost = this.queue.clear() + (this.writing ? 1 : 0);
    this.writing = false;
    this.failures += lost;
    this.note(reason);
    this.host.disconnected(this.peerId);
    this.host.listener.connectionChanged(this.peerId, false);
    this.tellUnreachable();
    if (this.uri === null) this.host.deserted(this);
    else this.dialIn(backOffMs(this.failedDials, this.host.random()) + this.waits());
  }

  /** The side with the lower peer id calls first. */
  private waits(): number {
    return this.host.own().peerId > this.peerId ? HIGHER_WAITS_MS : 0;
  }

  private dialIn(milliseconds: number): void {
    this.stopTimer();
    if (this.closed || this.uri === null) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.current === null && this.dialing === null) this.dial();
    }, milliseconds);
  }

  private stopTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private dial(): void {
    if (this.host.own().clusterId === null) {
      this.dialFailed('this node is not a member of a cluster yet');
      return;
    }
    let target: string;
    try {
      target = channelTarget(this.uri as string);
    } catch (error) {
      this.dialFailed((error as Error).message);
      return;
    }
    let greeted = false;
    const stream = dialStream(target, this.host.way(), {
      frame: (bytes) => {
        if (greeted) {
          this.received(stream, bytes);
          return;
        }
        greeted = true;
        clearTimeout(patience);
        this.answered(stream, bytes);
      },
      ended: (reason) => {
        clearTimeout(patience);
        if (this.dialing === stream) this.dialFailed(reason);
        else this.ended(stream, reason);
      },
    });
    this.dialing = stream;
    const patience = setTimeout(() => {
      if (this.dialing !== stream) return;
      stream.close(null);
      this.dialFailed(`no answer within ${HANDSHAKE_MS / 1000} s`);
    }, HANDSHAKE_MS);
    stream.write(encodeHello(this.host.helloTo(this.peerId)), () => {});
  }

  /** The first frame of a peer that was called. */
  private answered(stream: FrameStream, bytes: Uint8Array): void {
    if (this.dialing !== stream) return;
    const own = this.host.own();
    const judged = judgeAnswer(own, bytes, this.peerId);
    if (judged.kind === 'refused') {
      stream.close(judged.reason);
      this.dialFailed(judged.reason);
      return;
    }
    this.dialing = null;
    this.adopt(stream, judged.hello, judged.version, own.peerId);
  }

  private dialFailed(reason: string): void {
    this.dialing = null;
    if (this.current !== null) return;
    this.note(reason);
    this.dialIn(backOffMs(this.failedDials++, this.host.random()) + this.waits());
  }
}

export type JudgedFrame =
  | { readonly kind: 'agreed'; readonly hello: Hello; readonly version: number }
  | { readonly kind: 'refused'; readonly reason: string; readonly hello: Hello | null };

/** The first frame of a stream. expected: as in `judgeHello`. */
export function judgeAnswer(own: OwnSide, bytes: Uint8Array, expected: PeerId | null): JudgedFrame {
  let hello: Hello | null;
  try {
    ({ hello } = decodeFrame(bytes, null));
  } catch (error) {
    return { kind: 'refused', reason: `the first frame is no hello: ${(error as Error).message}`, hello: null };
  }
  if (hello === null) return { kind: 'refused', reason: 'the first frame is no hello', hello };
  const judged = judgeHello(own, hello, expected);
  return judged.kind === 'agreed' ? { ...judged, hello } : { ...judged, hello };
}
