/**
 * Closes connections of clients that may not connect, for their address or because there are too many, in every thread that takes connections,
 * and counts them for all of them together.
 */

import type { Socket } from 'node:net';
import { addressBytes, plainAddressBytes } from '../../protocols/addresses.js';
import { type ClientLists, mayConnect } from './client-lists.js';
import { OpenConnections, type OpenConnectionsData } from './open-connections.js';

/** What the gate of a thread is made of. */
export interface GateData {
  readonly lists: ClientLists;
  readonly memory: SharedArrayBuffer;
  readonly open: OpenConnectionsData;
  /** Of this thread, in `open`. */
  readonly lane: number;
}

/** Why a connection was refused: for the lists of addresses, or by the setting of that name. */
export const REFUSAL_CAUSES = ['address', 'max_connections', 'max_connections_per_client'] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

export interface Refusals {
  readonly counts: Readonly<Record<RefusalCause, number>>;
  /** The address of a client that was refused lately; empty: none was. */
  readonly lately: string;
}

/** The shared memory has the counts in 8 bytes each, the lock of the text in 4, its length in 4, and the text. */
const LOCK_WORD = 2 * REFUSAL_CAUSES.length;
const LENGTH_WORD = LOCK_WORD + 1;
const TEXT_AT = (LENGTH_WORD + 1) * Int32Array.BYTES_PER_ELEMENT;
const TEXT_BYTES_MAX = 64;

const LIMITS = { node: 'max_connections', client: 'max_connections_per_client' } as const;
/** How long a client that is one too many gets to read so, and how many do at a time: others are cut without a word. */
const LAST_WORDS_MS = 1000;
const TOLD_MAX = 32;

export class ClientGate {
  readonly #counts: BigUint64Array;
  readonly #words: Int32Array;
  readonly #text: Uint8Array;
  readonly #open: OpenConnections;
  #told = 0;

  constructor(private readonly data: GateData) {
    const { lane, memory, open } = data;
    this.#counts = new BigUint64Array(memory, 0, REFUSAL_CAUSES.length);
    this.#words = new Int32Array(memory, 0, TEXT_AT / Int32Array.BYTES_PER_ELEMENT);
    this.#text = new Uint8Array(memory, TEXT_AT);
    this.#open = new OpenConnections(open, lane);
  }

  /** The gate of the main thread. */
  static of(lists: ClientLists, open: OpenConnectionsData): ClientGate {
    return new ClientGate({ lists, open, memory: new SharedArrayBuffer(TEXT_AT + TEXT_BYTES_MAX), lane: 0 });
  }

  /** For the gate of a thread that has no connection: those that one before it has left in the lane are no more. */
  forThread(lane: number): GateData {
    this.#open.clear(lane);
    return { ...this.data, lane };
  }

  /** False: the connection is over. tooMany: said to a client that is one too many; null: nothing. */
  admits(socket: Socket, tooMany: Buffer | null): boolean {
    const { remoteAddress = '' } = socket;
    const bytes = addressBytes(remoteAddress);
    if (bytes === null) {
      // It has gone already.
      socket.destroy();
      return false;
    }
    if (!mayConnect(remoteAddress, this.data.lists)) {
      this.#refused('address', remoteAddress);
      // At once: a client that is not to be there costs no answer, and learns nothing.
      socket.destroy();
      return false;
    }
    const address = plainAddressBytes(bytes);
    const limit = this.#open.open(address);
    if (limit === null) {
      socket.once('close', () => this.#open.close(address));
      return true;
    }
    this.#refused(LIMITS[limit], remoteAddress);
    if (tooMany === null || this.#told === TOLD_MAX) socket.destroy();
    else this.#tell(socket, tooMany);
    return false;
  }

  refusals(): Refusals {
    const counts = REFUSAL_CAUSES.map((reason, at) => [reason, Number(Atomics.load(this.#counts, at))]);
    let lately = '';
    this.#alone(() => {
      lately = String.fromCharCode(...this.#text.subarray(0, this.#words[LENGTH_WORD]));
    });
    return { counts: Object.fromEntries(counts) as Record<RefusalCause, number>, lately };
  }

  /** Connections that are open now, and how many may be. */
  connections(): { readonly open: number; readonly max: number; readonly maxPerClient: number } {
    const { max, maxPerClient } = this.data.open;
    return { open: this.#open.count(), max, maxPerClient };
  }

  #tell(socket: Socket, words: Buffer): void {
    this.#told++;
    // What the client still sends is read and dropped: else it would lose what is said to it.
    socket.on('error', () => {}).resume();
    socket.end(words);
    const patience = setTimeout(() => socket.destroy(), LAST_WORDS_MS);
    patience.unref();
    socket.once('end', () => socket.destroySoon());
    socket.once('close', () => {
      this.#told--;
      clearTimeout(patience);
    });
  }

  #refused(reason: RefusalCause, address: string): void {
    Atomics.add(this.#counts, REFUSAL_CAUSES.indexOf(reason), 1n);
    this.#alone(() => {
      const length = Math.min(TEXT_BYTES_MAX, address.length);
      for (let at = 0; at < length; at++) this.#text[at] = address.charCodeAt(at);
      this.#words[LENGTH_WORD] = length;
    });
  }

  /** Does something with the text while no other thread does; else not at all: the next refusal is as good an example. */
  #alone(use: () => void): void {
    if (Atomics.compareExchange(this.#words, LOCK_WORD, 0, 1) !== 0) return;
    use();
    Atomics.store(this.#words, LOCK_WORD, 0);
  }
}
