/**
 * Packs answers for clients that accept it. Short ones are packed by the thread that has the connection, unless that is the main thread: to
 * hand them to another one costs more than packing them. Long ones are packed in the runtime's pool, few at a time; those that find it full,
 * or no memory, go as they are. So packing never makes an answer an error.
 */

import type { Ledger } from '../../../storage/memory/shared-ledger.js';
import { type Coding, packingCodings, packLater, packNow } from '../../context/codings.js';
import { chosenCoding } from './accept-encoding.js';
import type { RestReply } from './reply.js';

/** Takes some 0.1 ms. */
const PACKED_AT_ONCE_BYTES_MAX = 16_384;
const PACKING_MAX = 4;
/** Clients send few different headers; longer ones are read each time. */
const KNOWN_MAX = 64;
const KNOWN_LENGTH_MAX = 256;

export class AnswerEncoder {
  readonly #known = new Map<string, Coding | null>();
  #packing = 0;

  constructor(
    private readonly options: {
      /** Shorter answers go as they are; null: all of them. */
      readonly minBytes: number | null;
      readonly ledger: Ledger;
      /** Nothing is packed in this thread. */
      readonly isMain: boolean;
    },
  ) {}

  /** accepted: the header `accept-encoding` of the request; undefined: there is none. */
  encode(reply: RestReply, accepted: string | undefined): RestReply | Promise<RestReply> {
    const { isMain, minBytes } = this.options;
    const { length } = reply.body;
    if (accepted === undefined || minBytes === null || length < minBytes) return reply;
    const coding = this.#codingOf(accepted);
    if (coding === null) return withHeaders(reply, VARY);
    if (isMain || length > PACKED_AT_ONCE_BYTES_MAX) return this.#later(reply, coding);
    try {
      return packed(reply, packNow(reply.body, coding), coding);
    } catch {
      return withHeaders(reply, VARY);
    }
  }

  async #later(reply: RestReply, coding: Coding): Promise<RestReply> {
    const { ledger } = this.options;
    const { length } = reply.body;
    if (this.#packing >= PACKING_MAX || !ledger.reserve('answers', length)) return withHeaders(reply, VARY);
    this.#packing++;
    try {
      return packed(reply, await packLater(reply.body, coding), coding);
    } catch {
      return withHeaders(reply, VARY);
    } finally {
      this.#packing--;
      ledger.release('answers', length);
    }
  }

  #codingOf(accepted: string): Coding | null {
    const known = this.#known.get(accepted);
    if (known !== undefined) return known;
    const coding = chosenCoding(accepted, packingCodings());
    if (accepted.length > KNOWN_LENGTH_MAX) return coding;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(accepted, coding);
    return coding;
  }
}

const VARY: readonly string[] = ['vary', 'accept-encoding'];

function packed(reply: RestReply, body: Buffer, coding: Coding): RestReply {
  // Nothing is won with what has been packed before.
  if (body.length >= reply.body.length) return withHeaders(reply, VARY);
  return { ...withHeaders(reply, ['content-encoding', coding, ...VARY]), body };
}

function withHeaders(reply: RestReply, more: readonly string[]): RestReply {
  return { ...reply, headers: [...reply.headers, ...more] };
}
