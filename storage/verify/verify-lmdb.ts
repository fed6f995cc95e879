/**
 * Checks LMDB files before the node opens them, in a child process: LMDB trusts its file, and a damaged one can end the
 * process that reads it. The child walks every database and checks every checksum that must hold for the replica or the
 * consensus log to be opened; what can be made anew (a replica's ids, indexes), or concerns a single answer (payloads), is
 * left to the store; so are the files that records point at, which cannot harm who reads them and are named by the store.
 *
 * This file is both sides: `verifyReplicas` and `verifyConsensus` start it as the child.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { readConsensus } from '../consensus-log/environment.js';
import { CONSENSUS_DATABASES } from '../consensus-log/records.js';
import { initChecksum } from '../disk/checksum.js';
import { isMarkedMade } from '../disk/format-marker.js';
import { DATABASES, type DatabaseName, SnapshotReader } from '../disk/lmdb.js';
import { damagedMeta } from '../disk/lmdb-meta.js';
import { decodeManifest } from '../replica/manifest.js';
import { decodeStale, STALE_KEY } from '../replica/stale.js';
import { damagedRecord, decodeReplicaState, MANIFEST_KEY, operationOfKey, STATE_KEY, uncheck, unseal } from '../wal/records.js';

/** The child's argument says what the folders hold. */
const CHILD_ARGUMENTS = { replica: 'verify-lmdb', consensus: 'verify-consensus' } as const;

type Kind = keyof typeof CHILD_ARGUMENTS;

/** A walk that takes longer than this and a second for each 10 MB goes in circles. */
const PATIENCE_MS = 60_000;
const BYTES_PER_MS = 10_000;

interface Verdict {
  readonly folder: string;
  readonly damaged: string | null;
}

/** What is damaged in the LMDB file of each replica folder; null for nothing (or for one that has no file yet). */
export function verifyReplicas(folders: readonly string[]): Promise<Map<string, string | null>> {
  return verifyFolders('replica', folders);
}

/** What is damaged in the LMDB file of a consensus log; null for nothing (or for one that has no file yet). */
export async function verifyConsensus(folder: string): Promise<string | null> {
  return (await verifyFolders('consensus', [folder])).get(folder) ?? null;
}

async function verifyFolders(kind: Kind, folders: readonly string[]): Promise<Map<string, string | null>> {
  const verdicts = new Map<string, string | null>();
  let rest = folders.filter((folder) => {
    // One that was never made to the end holds nothing that was acknowledged; one whose file is gone is found out at opening.
    const present = isMarkedMade(replicaFolder(folder)) && existsSync(dataFile(folder));
    if (!present) verdicts.set(folder, null);
    return present;
  });
  while (rest.length > 0) {
    const end = await runChild(kind, rest, ({ folder, damaged }) => verdicts.set(folder, damaged));
    rest = rest.filter((folder) => !verdicts.has(folder));
    const crashed = rest.shift();
    if (crashed !== undefined) verdicts.set(crashed, `${dataFile(crashed)} is damaged: reading it ${end}`);
  }
  return verdicts;
}

/** Runs one child until it is done or dies. Resolves to how it ended. */
function runChild(kind: Kind, folders: readonly string[], onVerdict: (verdict: Verdict) => void): Promise<string> {
  return new Promise((resolve) => {
    const child = fork(fileURLToPath(import.meta.url), [CHILD_ARGUMENTS[kind]], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    let left = folders;
    let timer = watch(child, left[0]);
    let reason: string | null = null;
    child.on('message', (verdict: Verdict) => {
      clearTimeout(timer);
      onVerdict(verdict);
      left = left.slice(1);
      timer = watch(child, left[0]);
      if (left.length === 0) child.disconnect();
    });
    child.on('error', (error) => {
      reason = `failed: ${error.message}`;
      // A process that was not even started ends neither way.
      if (child.pid === undefined) resolve(reason);
    });
    // The last messages may come after the exit, never after the disconnection.
    let open = 2;
    const end = (): void => {
      if (--open > 0) return;
      clearTimeout(timer);
      const { exitCode, signalCode } = child;
      resolve(
        reason ?? (signalCode === 'SIGKILL' ? 'does not come to an end' : `ended the process (${signalCode ?? `status ${exitCode}`})`),
      );
    };
    child.on('exit', end);
    child.on('disconnect', end);
    child.send(folders);
  });
}

function watch(child: ChildProcess, folder: string | undefined): NodeJS.Timeout | undefined {
  if (folder === undefined) return undefined;
  const bytes = statSync(dataFile(folder), { throwIfNoEntry: false })?.size ?? 0;
  return setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS + bytes / BYTES_PER_MS);
}

// ------------------------------------------------------------------ child

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  const verify = process.argv[2] === CHILD_ARGUMENTS.consensus ? verifyLog : verifyReplica;
  process.once('message', (folders: string[]) => {
    void verifyAll(folders, verify);
  });
}

async function verifyAll(folders: readonly string[], verify: (folder: string) => Promise<string | null>): Promise<void> {
  await initChecksum();
  for (const folder of folders) {
    const verdict: Verdict = { folder, damaged: await verify(folder) };
    await new Promise((resolve) => process.send?.(verdict, resolve));
  }
}

function verifyReplica(folder: string): Promise<string | null> {
  return complaintOf(folder, DATABASES, walk);
}

function verifyLog(folder: string): Promise<string | null> {
  return complaintOf(folder, CONSENSUS_DATABASES, (reader) => void readConsensus(reader));
}

/** What keeps the folder's LMDB file from being read, null for nothing. */
async function complaintOf<Name extends string>(
  folder: string,
  databases: readonly Name[],
  read: (reader: SnapshotReader<Name>) => void,
): Promise<string | null> {
  let reader: SnapshotReader<Name> | null = null;
  try {
    const damaged = damagedMeta(dataFile(folder));
    if (damaged !== null) return `${dataFile(folder)}: ${damaged}`;
    reader = SnapshotReader.openReadOnly(lmdbFolder(folder), databases);
    reader.refresh();
    read(reader);
    return null;
  } catch (error) {
    return `${error instanceof TroupeError ? folder : dataFile(folder)}: ${errorFacts(error).detail}`;
  } finally {
    await reader?.close();
  }
}

function walk(reader: SnapshotReader): void {
  const state = decodeReplicaState(reader.get('meta', STATE_KEY) ?? missing('meta/state'));
  decodeManifest(reader.get('meta', MANIFEST_KEY) ?? missing('meta/manifest'));
  decodeStale(reader.get('meta', STALE_KEY));
  for (const database of DATABASES) {
    let entries = 0;
    for (const { key, value } of reader.range(database, FIRST_KEY, LAST_KEY)) {
      verifyRecord(database, key, value, state.appliedOperation);
      entries++;
    }
    // A damaged page can hide records without any other sign: deleted points would come back. Ids and indexes are made anew by the store.
    if (database !== 'ids' && database !== 'index' && entries !== reader.entryCount(database)) missing(database);
  }
}

const FIRST_KEY = Uint8Array.of(0);
const LAST_KEY = Buffer.alloc(64, 0xff);

function verifyRecord(database: DatabaseName, key: Uint8Array, value: Uint8Array, applied: number): void {
  const name = `${database}/${Buffer.from(key).toString('hex')}`;
  if (database === 'rows') unseal(value, name);
  else if (database === 'deleted') uncheck(value, name);
  // What is applied is kept for other replicas only.
  else if (database === 'wal' && operationOfKey(key) > applied) unseal(value, name);
}

function missing(name: string): never {
  throw damagedRecord(name);
}

function replicaFolder(folder: string): string {
  return path.dirname(lmdbFolder(folder));
}

function lmdbFolder(folder: string): string {
  return path.basename(folder) === 'lmdb' ? folder : path.join(folder, 'lmdb');
}

function dataFile(folder: string): string {
  return path.join(lmdbFolder(folder), 'data.mdb');
}
