/** Answers with a file, or a part of it, that is sent as it is read. */

import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ArchiveRange } from '../../../storage/snapshot-store/snapshot-store.js';
import type { OfferedEvents, OfferedFile } from '../../context/transfers.js';
import { type RestReply, textReply } from '../calls/reply.js';
import { wantedRange } from './byte-range.js';

/** The head of an answer, and its body. Whoever does not read the body to its end destroys it. */
export interface StreamReply {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Null: the client asks for the head alone. */
  readonly body: Readable | null;
}

/** Headers of the request that choose a part. */
export interface PartHeaders {
  readonly range?: string | undefined;
  readonly 'if-range'?: string | string[] | undefined;
}

const TYPE = ['content-type', 'application/octet-stream'] as const;

/** isHead: nothing is read of the file. */
export async function fileReply(file: OfferedFile, asked: PartHeaders, isHead: boolean): Promise<StreamReply | RestReply> {
  const { checksum, name, size } = file;
  const open = (range: ArchiveRange | null) => (isHead ? null : file.open(range));
  const named = ['content-disposition', disposition(name)];
  if (size === null) return { status: 200, headers: [...TYPE, ...named], body: await open(null) };
  const tag = checksum === null ? null : `"${checksum}"`;
  const wanted = isOfThisFile(asked['if-range'], tag) ? wantedRange(asked.range, size) : 'whole';
  if (wanted === 'unsatisfiable')
    return textReply(416, `the file has ${size} bytes`, ['content-range', `bytes */${size}`, 'accept-ranges', 'bytes']);
  const shared = [...TYPE, ...named, 'accept-ranges', 'bytes', ...(tag === null ? [] : ['etag', tag])];
  if (wanted === 'whole') return { status: 200, headers: [...shared, 'content-length', String(size)], body: await open(null) };
  const { end, start } = wanted;
  const part = ['content-range', `bytes ${start}-${end}/${size}`, 'content-length', String(end - start + 1)];
  return { status: 206, headers: [...shared, ...part], body: await open(wanted) };
}

/** isHead: no event is waited for. */
export async function eventsReply(events: OfferedEvents, isHead: boolean): Promise<StreamReply> {
  // Proxies are asked to hold nothing back.
  const headers = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-store', 'x-accel-buffering', 'no'];
  return { status: 200, headers, body: isHead ? null : await events.open() };
}

/** Sends a body at the client's pace. Rejects with the error of the body if it breaks, after the connection is cut; not if the client goes away. */
export async function sendStream(body: Readable, to: NodeJS.WritableStream): Promise<void> {
  let broken: { readonly error: unknown } | null = null;
  const note = (error: unknown): void => {
    broken ??= { error };
  };
  body.once('error', note);
  try {
    await pipeline(body, to);
  } catch {
    // A client that goes away ends the body, too.
    const error = (broken as { readonly error: NodeJS.ErrnoException } | null)?.error;
    if (error !== undefined && !OF_THE_CLIENT.has(error.code)) throw error;
  }
}

const OF_THE_CLIENT: ReadonlySet<string | undefined> = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
  'ECONNRESET',
  'EPIPE',
]);

/** Whether a range of this file is wanted: a client that has a part of another one gets all of this. */
function isOfThisFile(condition: string | string[] | undefined, tag: string | null): boolean {
  return condition === undefined || (tag !== null && condition === tag);
}

/** Names with other characters than visible ASCII have a second form. Source: RFC 6266. */
function disposition(name: string): string {
  const plain = name.replace(/[^ -~]|["\\]/gu, '_');
  if (plain === name) return `attachment; filename="${name}"`;
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
