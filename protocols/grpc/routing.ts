/** What the main thread needs to know of a request; the rest of its bytes is for the engine's workers. */

import { TroupeError } from '../errors.js';
import type { MessageType } from './schema.js';
import { BYTES, VARINT, WireReader } from './wire-reader.js';

export interface Routing {
  /** Texts that REST has in the path, by name; '' for what was not sent. */
  readonly path: Readonly<Record<string, string>>;
  readonly wait: boolean;
  readonly timeoutSeconds: number | undefined;
}

const TIMEOUT_SECONDS_MAX = 0xffff_ffff;

/** Reads the fields called `names`, `wait` and `timeout` of messages of a type. */
export class RoutingReader {
  private readonly names: ReadonlyMap<number, string>;
  private readonly absent: Readonly<Record<string, string>>;
  private readonly waitTag: number;
  private readonly timeoutTag: number;

  constructor(type: MessageType, names: readonly string[]) {
    const present = names.filter((name) => tagOf(type, name, BYTES) > 0);
    this.names = new Map(present.map((name) => [tagOf(type, name, BYTES), name]));
    this.absent = Object.fromEntries(present.map((name) => [name, '']));
    this.waitTag = tagOf(type, 'wait', VARINT);
    this.timeoutTag = tagOf(type, 'timeout', VARINT);
  }

  /** Errors: `malformedBody` for broken bytes, `malformedParameter` for a timeout out of its range. */
  read(bytes: Uint8Array): Routing {
    const reader = new WireReader(bytes);
    const path = { ...this.absent };
    let wait = false;
    let timeout: number | bigint | undefined;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      const name = this.names.get(tag);
      if (name !== undefined) path[name] = reader.string();
      else if (tag === this.waitTag) wait = reader.bool();
      else if (tag === this.timeoutTag) timeout = reader.uint64();
      else reader.skip(tag & 7);
    }
    return { path, wait, timeoutSeconds: timeout === undefined ? undefined : checkTimeout(timeout) };
  }
}

/** 0 when the message has no such field. */
function tagOf(type: MessageType, name: string, wireType: number): number {
  const field = type.fields.find((candidate) => candidate.name === name);
  return field === undefined ? 0 : (field.number << 3) | wireType;
}

function checkTimeout(seconds: number | bigint): number {
  if (seconds >= 1 && seconds <= TIMEOUT_SECONDS_MAX) return Number(seconds);
  throw new TroupeError('malformedParameter', `timeout: ${seconds} seconds, must be from 1 to ${TIMEOUT_SECONDS_MAX}`);
}
