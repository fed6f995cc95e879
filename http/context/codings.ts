/** The codings in which bodies may be packed, by the names that HTTP has for them, and the settings that they are used with. */

import type { Transform } from 'node:stream';
import type { BrotliOptions, ZlibOptions } from 'node:zlib';
import { zlib } from '../../protocols/late-modules.js';

/** A coding of answers. */
export type Coding = 'zstd' | 'br' | 'gzip';

interface ZstdOptions {
  readonly params: Readonly<Record<number, number>>;
  readonly pledgedSrcSize?: number;
}

/** What Node.js has from 22.15 on, whose types are those of an older one here. */
interface ZstdModule {
  zstdCompress(bytes: Uint8Array, options: ZstdOptions, done: Done): void;
  zstdCompressSync(bytes: Uint8Array, options: ZstdOptions): Buffer;
  createZstdDecompress(options: ZstdOptions): Transform;
}

type Done = (error: Error | null, packed: Buffer) => void;

// Of the interface of zstd: the types have no names for them.
const ZSTD_LEVEL = 100;
const ZSTD_WINDOW_LOG_MAX = 100;

/** A window of 8 MiB, the largest that a sender may count on. Source: RFC 9659. */
const ZSTD_WINDOW_LOG = 23;
/** The largest window of Brotli is 16 MiB; those of gzip and deflate have 32 KiB. With tables. */
const UNPACKING_BYTES = { zstd: 9 << 20, br: 17 << 20, gzip: 64 << 10, deflate: 64 << 10 } as const;

type ReadCoding = keyof typeof UNPACKING_BYTES;

let answerCodings: readonly Coding[] | null = null;

/** The codings that this runtime can pack answers in, the cheapest first. */
export function packingCodings(): readonly Coding[] {
  answerCodings ??= zstd() === null ? ['br', 'gzip'] : ['zstd', 'br', 'gzip'];
  return answerCodings;
}

/** The codings that bodies of requests may have. */
export function unpackingCodings(): readonly string[] {
  return [...packingCodings(), 'deflate'];
}

/** Packs at the quickest level of each coding, in this thread. */
export function packNow(bytes: Buffer, coding: Coding): Buffer {
  switch (coding) {
    case 'zstd':
      return (zstd() as ZstdModule).zstdCompressSync(bytes, zstdOptions(bytes.length));
    case 'br':
      return zlib().brotliCompressSync(bytes, brotliOptions(bytes.length));
    case 'gzip':
      return zlib().gzipSync(bytes, gzipOptions(bytes.length));
    default:
      return coding satisfies never;
  }
}

/** As `packNow`, in a thread of the runtime's pool. */
export function packLater(bytes: Buffer, coding: Coding): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done: Done = (error, packed) => (error === null ? resolve(packed) : reject(error));
    switch (coding) {
      case 'zstd':
        return (zstd() as ZstdModule).zstdCompress(bytes, zstdOptions(bytes.length), done);
      case 'br':
        return zlib().brotliCompress(bytes, brotliOptions(bytes.length), done);
      case 'gzip':
        return zlib().gzip(bytes, gzipOptions(bytes.length), done);
      default:
        return coding satisfies never;
    }
  });
}

/** The coding of the body of a request, in small letters; null: it comes as it is. */
export function bodyCoding({ 'content-encoding': coding = '' }: { readonly 'content-encoding'?: string | undefined }): string | null {
  const name = coding.trim().toLowerCase();
  return name === '' || name === 'identity' ? null : name;
}

export interface Unpacking {
  /** Takes packed bytes and gives them unpacked, in the runtime's pool. */
  readonly stream: Transform;
  /** Memory that it may take beside what it gives. */
  readonly bytes: number;
}

/** Null for a coding that this runtime cannot read. coding: in small letters. */
export function unpacking(coding: string): Unpacking | null {
  const name = coding === 'x-gzip' ? 'gzip' : coding;
  if (!unpackingCodings().includes(name)) return null;
  return { stream: unpackingStream(name as ReadCoding), bytes: UNPACKING_BYTES[name as ReadCoding] };
}

function unpackingStream(coding: ReadCoding): Transform {
  const options = { chunkSize: 64 << 10 };
  switch (coding) {
    case 'zstd':
      return (zstd() as ZstdModule).createZstdDecompress({ ...options, params: { [ZSTD_WINDOW_LOG_MAX]: ZSTD_WINDOW_LOG } });
    case 'br':
      return zlib().createBrotliDecompress(options);
    case 'gzip':
      return zlib().createGunzip(options);
    case 'deflate':
      return zlib().createInflate(options);
    default:
      return coding satisfies never;
  }
}

function zstd(): ZstdModule | null {
  const module = zlib() as Partial<ZstdModule>;
  return module.zstdCompress === undefined ? null : (module as ZstdModule);
}

function zstdOptions(bytes: number): ZstdOptions {
  return { params: { [ZSTD_LEVEL]: 1 }, pledgedSrcSize: bytes };
}

function brotliOptions(bytes: number): BrotliOptions {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = zlib().constants;
  return { params: { [BROTLI_PARAM_QUALITY]: 1, [BROTLI_PARAM_SIZE_HINT]: bytes } };
}

/** A window no larger than what is packed: making tables takes most of the time for short answers. */
function gzipOptions(bytes: number): ZlibOptions {
  const windowBits = Math.min(15, Math.max(9, Math.ceil(Math.log2(bytes))));
  return { level: 1, windowBits, memLevel: windowBits - 7 };
}
