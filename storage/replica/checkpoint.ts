/**
 * A copy of a replica's files as of one commit, made while the replica goes on working. LMDB copies its file from a snapshot; the files
 * that the copy points at are linked, as segments' files do not change and files of rows only grow. The copy opens as a replica whose log
 * begins after the last operation that it has applied.
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { LogTag } from '../../protocols/model/shard-log.js';
import { markMade } from '../disk/format-marker.js';
import { Environment } from '../disk/lmdb.js';
import { segmentFolder } from '../segment/sealed.js';
import type { ReplicaCheckpoint } from '../threads/shard-log.js';
import { decodeLogTags, encodeLogTags, LOG_KEY, logBehind, NO_TAGS, tagOf } from '../wal/log-tags.js';
import { damagedRecord, decodeReplicaState, MANIFEST_KEY, operationKey, STATE_KEY, timeOfValue } from '../wal/records.js';
import { FORMAT } from './formats.js';
import { decodeManifest, type Manifest } from './manifest.js';
import { STALE_KEY } from './stale.js';
import { UNFINISHED_KEY } from './unfinished.js';

type CheckpointFile = ReplicaCheckpoint['files'][number];

/**
 * Makes the copy in `folder`, whose present content is removed. Until it resolves, no file of a segment may be removed from the replica.
 * Errors: `storage`; `folder` has nothing then.
 */
export async function makeCheckpoint(environment: Environment, replica: string, folder: string): Promise<ReplicaCheckpoint> {
  try {
    fs.rmSync(folder, { recursive: true, force: true });
    const lmdb = path.join(folder, 'lmdb');
    fs.mkdirSync(lmdb, { recursive: true });
    await environment.backup(lmdb);
    const { at, manifest, timeMs } = await withoutLog(lmdb);
    const files = [fileIn(folder, 'lmdb/data.mdb'), ...linkSegments(replica, folder, manifest)];
    markMade(folder, FORMAT);
    return { at, timeMs, folder, files: [...files, fileIn(folder, 'format.json')] };
  } catch (error) {
    remove(folder);
    if (error instanceof TroupeError) throw error;
    throw new TroupeError('storage', `cannot copy the replica to ${folder}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Removes a folder. Leftovers are removed when the next copy is made. */
function remove(folder: string): void {
  try {
    fs.rmSync(folder, { recursive: true, force: true });
  } catch {}
}

/**
 * Removes from the copied environment the operations, which lie in files that are not copied. Returns the last applied operation with its time,
 * and the manifest.
 */
async function withoutLog(lmdb: string): Promise<{ at: LogTag; timeMs: number | null; manifest: Manifest }> {
  const copy = Environment.open(lmdb, () => {
    throw new TroupeError('storage', `the copy in ${lmdb} is empty`);
  });
  try {
    if (copy.get('meta', UNFINISHED_KEY) !== undefined) throw new TroupeError('storage', 'the copy has a part of an operation');
    const { appliedOperation } = decodeReplicaState(copy.get('meta', STATE_KEY) ?? missing('state'));
    const record = copy.get('meta', LOG_KEY);
    const tags = record === undefined ? NO_TAGS : decodeLogTags(record);
    const at = tagOf(tags, appliedOperation);
    const logged = copy.get('wal', operationKey(appliedOperation));
    const known = tags.origin?.index === appliedOperation ? tags.origin.timeMs : null;
    const timeMs = logged === undefined ? known : timeOfValue(logged, `wal/${appliedOperation}`);
    copy.write(() => {
      copy.clear('wal');
      copy.put('meta', LOG_KEY, encodeLogTags(logBehind(at, tags.failed, timeMs)));
      // A leader has no stale buckets, so its copy has none (Bucket-B3).
      copy.remove('meta', STALE_KEY);
    });
    return { at, timeMs, manifest: decodeManifest(copy.get('meta', MANIFEST_KEY) ?? missing('manifest')) };
  } finally {
    await copy.close();
  }
}

function linkSegments(replica: string, folder: string, { segments }: Manifest): CheckpointFile[] {
  return segments.flatMap(({ id, kind }) => {
    if (kind === 'appendable') return linkFiles(replica, folder, 'rows', (name) => name === String(id));
    const sealed = path.relative(replica, segmentFolder(replica, id));
    // Skip the files of a build that is under way.
    return linkFiles(replica, folder, sealed.split(path.sep).join('/'), (name) => !name.endsWith('.tmp'));
  });
}

/** Links the files of one folder below the replica's. */
function linkFiles(replica: string, folder: string, below: string, wanted: (name: string) => boolean): CheckpointFile[] {
  fs.mkdirSync(path.join(folder, below), { recursive: true });
  const names = fs.readdirSync(path.join(replica, below)).filter(wanted);
  for (const name of names) linkFile(path.join(replica, below, name), path.join(folder, below, name));
  return names.map((name) => fileIn(folder, `${below}/${name}`));
}

/** Links a file, or copies it to another file system or one without links. */
function linkFile(source: string, target: string): void {
  try {
    fs.linkSync(source, target);
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    fs.copyFileSync(source, target);
  }
}

/** A file of the copy with its present size: a file of rows may grow, and later bytes do not belong to the copy. */
function fileIn(folder: string, name: string): CheckpointFile {
  return { path: name, bytes: fs.statSync(path.join(folder, name)).size };
}

function missing(record: string): never {
  throw damagedRecord(`meta/${record}`);
}
