/** Closes connections of clients that may not connect, in every thread that takes connections, and counts them for all of them together. */

import type { Socket } from 'node:net';
import { type ClientLists, mayConnect } from './client-lists.js';

/** What other threads make their gate of. */
export interface GateData {
  readonly lists: ClientLists;
  readonly memory: SharedArrayBuffer;
}

export interface Refusals {
  readonly count: number;
  /** The address of a client that was refused lately; empty: none was, or it had gone already. */
  readonly lately: string;
}

/** The shared memory has the count in 8 bytes, the lock of the text in 4, its length in 4, and the text. */
const LOCK_WORD = 2;
const LENGTH_WORD = 3;
const TEXT_AT = 16;
const TEXT_BYTES_MAX = 64;

export class ClientGate {
  readonly #count: BigUint64Array;
  readonly #words: Int32Array;
  readonly #text: Uint8Array;

  constructor(readonly data: GateData) {
    const { memory } = data;
    this.#count = new BigUint64Array(memory, 0, 1);
    this.#words = new Int32Array(memory, 0, TEXT_AT / Int32Array.BYTES_PER_ELEMENT);
    this.#text = new Uint8Array(memory, TEXT_AT);
  }

  static of(lists: ClientLists): ClientGate {
    return new ClientGate({ lists, memory: new SharedArrayBuffer(TEXT_AT + TEXT_BYTES_MAX) });
  }

  /** False: the connection is closed already. */
  admits(socket: Socket): boolean {
    const { remoteAddress = '' } = socket;
    if (mayConnect(remoteAddress, this.data.lists)) return true;
    Atomics.add(this.#count, 0, 1n);
    this.#note(remoteAddress);
    // At once: a client that is not to be there costs no answer, and learns nothing.
    socket.destroy();
    return false;
  }

  refusals(): Refusals {
    const count = Number(Atomics.load(this.#count, 0));
    let lately = '';
    this.#alone(() => {
      lately = String.fromCharCode(...this.#text.subarray(0, this.#words[LENGTH_WORD]));
    });
    return { count, lately };
  }

  #note(address: string): void {
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
