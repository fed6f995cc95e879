/** Where a client says that an archive is: at a URL, or in a file of this node's folder of snapshots. */

import { lstat, realpath } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TroupeError } from '../../protocols/errors.js';
import { folderName } from '../disk/folder-name.js';

export type ArchiveLocation =
  | { readonly kind: 'url'; readonly url: URL }
  /** An absolute path, as the client has written it. */
  | { readonly kind: 'file'; readonly path: string };

/** Errors: `malformedBody` for what is no URL; `badRequest` for one of another scheme, or a file that is not this machine's. */
export function readArchiveLocation(location: string): ArchiveLocation {
  let url: URL;
  try {
    url = new URL(location);
  } catch (error) {
    throw new TroupeError('malformedBody', `relative URL without a base: ${JSON.stringify(location)}`, { cause: error });
  }
  if (url.protocol === 'http:' || url.protocol === 'https:') return { kind: 'url', url };
  if (url.protocol !== 'file:') {
    throw new TroupeError('badRequest', `URL ${location} with scheme ${url.protocol.slice(0, -1)} is not supported`);
  }
  try {
    if (url.hostname !== '' && url.hostname !== 'localhost') throw new Error('the file is of another host');
    url.hostname = '';
    const path = fileURLToPath(url);
    if (path.includes('\0')) throw new Error('the path has a zero byte');
    return { kind: 'file', path };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TroupeError('badRequest', `URL ${location} names no file of this node (${why}); use file:///absolute/path.snapshot`, {
      cause: error,
    });
  }
}

/** Errors: `forbidden` where `service.enable_snapshot_url_recovery` is off. */
export function requireUrlRecovery(isEnabled: boolean): void {
  if (!isEnabled) throw new TroupeError('forbidden', 'Snapshot recovery from remote URLs is disabled in the configuration');
}

/**
 * The file of a snapshot that `path` names, without links on the way. The folder of a collection may also be given by the collection's name.
 * snapshotsPath: `storage.snapshots_path`. Errors: `badRequest` for what is not there or no file; `forbidden` for what is outside of the folder.
 */
export async function localArchivePath(path: string, snapshotsPath: string): Promise<string> {
  const folder = resolve(snapshotsPath);
  const found = (await real(path)) ?? (await real(withFolderName(path, folder)));
  if (found === null) throw new TroupeError('badRequest', `Snapshot file ${JSON.stringify(path)} does not exist`);
  const realFolder = await real(folder);
  if (realFolder === null || !isInside(found, realFolder)) {
    throw new TroupeError('forbidden', `Snapshot file path must be inside the snapshots directory ${JSON.stringify(folder)}`);
  }
  if (!(await lstat(found)).isFile()) throw new TroupeError('badRequest', `Snapshot file ${JSON.stringify(path)} is not a file`);
  return found;
}

/** `<folder>/My Pictures/…` as `<folder>/<the collection's folder>/…`. */
function withFolderName(path: string, folder: string): string {
  if (!isInside(path, folder)) return path;
  const [collection = '', ...rest] = relative(folder, path).split(sep);
  return rest.length === 0 ? path : [folder, folderName(collection), ...rest].join(sep);
}

function isInside(path: string, folder: string): boolean {
  return path.startsWith(folder + sep);
}

/** Null for what cannot be found. */
async function real(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    return null;
  }
}
