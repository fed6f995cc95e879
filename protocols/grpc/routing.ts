/** What the main thread needs to know of a request; the rest of its bytes is for the engine's workers. */

import { TroupeError } from '../errors.js';
import type { ReadConsistency } from '../model/cluster.js';
import type { MessageType } from './schema.js';
import { BYTES, VARINT, WireReader } from './wire-reader.js';

export interface Routing {
  /** Texts that REST has in the path, by name; '' for what was not sent. */
  readonly path: Readonly<Record<string, string>>;
  readonly wait: boolean;
  readonly timeoutSeconds: number | undefined;
  /** Undefined: none was sent, or one that decoding the request refuses. */
  readonly consistency: ReadConsistency | undefined;
}

/** By their numbers in gRPC. Source: contract, `ReadConsistencyType`. */
const CONSISTENCIES: readonly ReadConsistency[] = ['all', 'majority', 'quorum'];
const CONSISTENCY_TYPE = (1 << 3) | VARINT;
const CONSISTENCY_FACTOR = (2 << 3) | VARINT;

const TIMEOUT_SECONDS_MAX = 0xffff_ffff;

/** Reads the fields called `names`, `wait`, `timeout` and `read_consistency` of messages of a type. */
export class RoutingReader {
  private readonly names: ReadonlyMap<number, string>;
  private readonly absent: Readonly<Record<string, string>>;
  private readonly waitTag: number;
  private readonly timeoutTag: number;
  private readonly consistencyTag: number;

  constructor(type: MessageType, names: readonly string[]) {
    const present = names.filter((name) => tagOf(type, name, BYTES) > 0);
    this.names = new Map(present.map((name) => [tagOf(type, name, BYTES), name]));
    this.absent = Object.fromEntries(present.map((name) => [name, '']));
    this.waitTag = tagOf(type, 'wait', VARINT);
    this.timeoutTag = tagOf(type, 'timeout', VARINT);
    this.consistencyTag = tagOf(type, 'read_consistency', BYTES);
  }

  /** Errors: `malformedBody` for broken bytes, `malformedParameter` for a timeout out of its range. */
  read(bytes: Uint8Array): Routing {
    const reader = new WireReader(bytes);
    const path = { ...this.absent };
    let wait = false;
    let timeout: number | bigint | undefined;
    let consistency: ReadConsistency | undefined;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      const name = this.names.get(tag);
      if (name !== undefined) path[name] = reader.string();
      else if (tag === this.waitTag) wait = reader.bool();
      else if (tag === this.timeoutTag) timeout = reader.uint64();
      else if (tag === this.consistencyTag) consistency = readConsistency(reader, reader.length());
      else reader.skip(tag & 7);
    }
    return { path, wait, timeoutSeconds: timeout === undefined ? undefined : checkTimeout(timeout), consistency };
  }
}

/** The cursor stands at the message's first field. to: its end. */
function readConsistency(reader: WireReader, to: number): ReadConsistency | undefined {
  const { end } = reader;
  reader.end = to;
  let consistency: ReadConsistency | undefined;
  while (reader.at < to) {
    const tag = reader.tag();
    if (tag === CONSISTENCY_TYPE) consistency = CONSISTENCIES[Number(reader.uint64())];
    else if (tag === CONSISTENCY_FACTOR) consistency = Number(reader.uint64()) || undefined;
    else reader.skip(tag & 7);
  }
  reader.end = end;
  return consistency;
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
