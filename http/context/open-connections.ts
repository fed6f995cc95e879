/**
 * How many connections of clients are open, on the whole node and from each client's address, and whether one more may be: in memory that all
 * threads share which take connections. Each thread counts in a lane of its own, so that those of a lost thread can be taken off.
 *
 * Addresses are counted by two hashes, and the smaller of two counts goes: an address is never counted short, and seldom too high. Hosts of IPv6
 * have whole networks of addresses, so the first 64 bits are the client there.
 */

import { finishHash, mixBlock } from '../../vectors/murmur3.js';

/** Plain data, which goes to other threads as it is. */
export interface OpenConnectionsData {
  /** Of the whole node. */
  readonly max: number;
  readonly maxPerClient: number;
  readonly lanes: number;
  /** Any two numbers that clients do not know. */
  readonly seeds: readonly [number, number];
  readonly memory: SharedArrayBuffer;
}

/** What a connection would be one too many of. */
export type ConnectionLimit = 'node' | 'client';

const SLOTS = 2048;
/** The count of the lane, then both tables. */
const LANE_WORDS = 1 + 2 * SLOTS;
const CLIENT_BYTES_OF_IPV6 = 8;

export function openConnectionsData(options: Omit<OpenConnectionsData, 'memory'>): OpenConnectionsData {
  return { ...options, memory: new SharedArrayBuffer(options.lanes * LANE_WORDS * Int32Array.BYTES_PER_ELEMENT) };
}

export class OpenConnections {
  readonly #words: Int32Array;

  /** lane: of this thread, 0 to `data.lanes` - 1. */
  constructor(
    readonly data: OpenConnectionsData,
    private readonly lane: number,
  ) {
    if (lane < 0 || lane >= data.lanes) throw new RangeError(`lane ${lane} of ${data.lanes}`);
    this.#words = new Int32Array(data.memory);
  }

  /** Counts a connection until `close` is called for it; else what it is one too many of, and it is not counted. address: 4 or 16 bytes. */
  open(address: Uint8Array): ConnectionLimit | null {
    const places = this.#places(address);
    this.#add(places, 1);
    // Threads that open the last one at the same time may all be refused: the limit holds.
    const [all, ...byHash] = places.map((place) => this.#sum(place)) as [number, number, number];
    const limit = Math.min(...byHash) > this.data.maxPerClient ? 'client' : all > this.data.max ? 'node' : null;
    if (limit !== null) this.#add(places, -1);
    return limit;
  }

  close(address: Uint8Array): void {
    this.#add(this.#places(address), -1);
  }

  /** On the whole node. */
  count(): number {
    return this.#sum(0);
  }

  /** Takes off what a thread had open in a lane: it is lost. */
  clear(lane: number): void {
    const from = lane * LANE_WORDS;
    for (let at = from; at < from + LANE_WORDS; at++) Atomics.store(this.#words, at, 0);
  }

  /** Places in a lane: of its count, and of the address in both tables. */
  #places(address: Uint8Array): readonly [number, number, number] {
    const [one, other] = this.data.seeds;
    return [0, 1 + slotOf(address, one), 1 + SLOTS + slotOf(address, other)];
  }

  #add(places: readonly number[], by: number): void {
    for (const place of places) Atomics.add(this.#words, this.lane * LANE_WORDS + place, by);
  }

  #sum(place: number): number {
    let sum = 0;
    for (let lane = 0; lane < this.data.lanes; lane++) sum += Atomics.load(this.#words, lane * LANE_WORDS + place);
    return sum;
  }
}

function slotOf(address: Uint8Array, seed: number): number {
  const length = Math.min(address.length, CLIENT_BYTES_OF_IPV6);
  let hash = mixBlock(0, seed);
  for (let at = 0; at < length; at += 4) {
    const [a, b, c, d] = address.subarray(at, at + 4) as unknown as [number, number, number, number];
    hash = mixBlock(hash, a | (b << 8) | (c << 16) | (d << 24));
  }
  return finishHash(hash, length + 4) & (SLOTS - 1);
}
