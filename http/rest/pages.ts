/**
 * The dashboard's files under `/dashboard`, as `npm run build` leaves them. They are read once, with the first request for one of them:
 * what is not in the list of that moment is not there, so no path leads out of the folder.
 */

import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { crypto } from '../../protocols/late-modules.js';
import { escapeHtml } from '../context/html-text.js';

export const PAGES_PATH = '/dashboard';

export interface PageFile {
  readonly bytes: Buffer;
  readonly type: string;
  /** Weak: it is the same for the file and for the file packed. */
  readonly etag: string;
  /** Its name has a digest of what is in it, so it never changes. */
  readonly isLasting: boolean;
}

const FIRST = 'index.html';
/** Files whose names have a digest. */
const LASTING = `assets${sep}`;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
};

/** Scripts, styles and calls of this node alone; images also from within a payload. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export class Pages {
  #files: Promise<ReadonlyMap<string, PageFile>> | null = null;

  /** warning: shown above each page; null: none. */
  constructor(
    private readonly folder: string,
    private readonly warning: string | null,
  ) {}

  /** path: what follows `/dashboard/`, decoded; empty for the page itself. null: there is no such file. Rejects when the folder cannot be read. */
  async find(path: string): Promise<PageFile | null> {
    this.#files ??= readAll(this.folder, this.warning);
    try {
      return (await this.#files).get(path === '' ? FIRST : path) ?? null;
    } catch (error) {
      // A folder that is built later is found then.
      this.#files = null;
      throw error;
    }
  }
}

/** Names and values. */
export function pageHeaders({ etag, isLasting }: PageFile): string[] {
  return [
    'content-security-policy',
    POLICY,
    'x-content-type-options',
    'nosniff',
    'referrer-policy',
    'no-referrer',
    'etag',
    etag,
    'cache-control',
    isLasting ? 'public, max-age=31536000, immutable' : 'no-cache',
  ];
}

/** By their paths with `/`. Links are not followed, and files of other types are left out. */
async function readAll(folder: string, warning: string | null): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const read = await readFile(path);
    const bytes = relative(folder, path) === FIRST && warning !== null ? withWarning(read, warning) : read;
    const etag = `W/"${crypto().createHash('sha256').update(bytes).digest('base64url')}"`;
    const name = relative(folder, path);
    files.set(name.split(sep).join('/'), { bytes, type, etag, isLasting: name.startsWith(LASTING) });
  }
  return files;
}

/** All pages are parts of the first file, so they show what stands in it. */
function withWarning(html: Buffer, warning: string): Buffer {
  return Buffer.from(html.toString().replace(/<body>/, () => `<body><p class="exposure" role="alert">${escapeHtml(warning)}</p>`));
}
