/**
 * Checks LMDB files before the node opens them, in a child process: LMDB trusts its file, and a damaged one can end the
 * process that reads it. The child walks every database and checks every checksum that must hold for the replica or the
 * consensus log to be opened; what can be made anew (a replica's ids, indexes), or concerns a single answer (payloads), is
 * left to the store; so are the files that records point at, which cannot harm who reads them and are named by the store.
 *
 * `verifyReplicas` and `verifyConsensus` start the child, whose program is `lmdb-child.ts`.
 */

import type { ChildProcess } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { TroupeError } from '../../protocols/errors.js';
import { childProcess } from '../../protocols/late-modules.js';
import { isMarkedMade } from '../disk/format-marker.js';
import { isAsClosed } from '../replica/sleep-record.js';
import { threadEntry } from '../threads/entries.js';
import { CAN_BEGIN, CHILD_ARGUMENTS, dataFile, type FileVerdict, HAS_OPENED, lmdbFolder } from './check-messages.js';

type Kind = keyof typeof CHILD_ARGUMENTS;

/** A walk that takes longer than this and a second for each 10 MB goes in circles. */
const PATIENCE_MS = 60_000;
const BYTES_PER_MS = 10_000;

/** How long a child waits for another folder. */
const IDLE_MS = 1000;

/**
 * What is damaged in the LMDB file of each replica folder; null for nothing (or for one that has no file yet). Errors: `storage` of outcome
 * `none` if something is lacking (descriptors, memory, addresses) without which no file can be judged.
 */
export async function verifyReplicas(folders: readonly string[]): Promise<Map<string, string | null>> {
  return new Map(await Promise.all(folders.map(async (folder) => [folder, await replicas.check(folder)] as const)));
}

/**
 * As `verifyReplicas`, for a process that follows one which has ended in order: a file that is as it was left (Sleep-S7) is not looked through again.
 * Only when a folder is asked for first: whoever asks again has met damage, or has put other files there.
 */
export function verifierOfChanges(): typeof verifyReplicas {
  const asked = new Set<string>();
  return async (folders) => {
    const verdicts = new Map<string, string | null>();
    for (const folder of folders) {
      const isFirst = !asked.has(folder);
      asked.add(folder);
      if (isFirst && (await isAsClosed(folder))) verdicts.set(folder, null);
    }
    return new Map([...verdicts, ...(await verifyReplicas(folders.filter((folder) => !verdicts.has(folder))))]);
  };
}

/** What is damaged in the LMDB file of a consensus log; null for nothing (or for one that has no file yet). Errors: as `verifyReplicas`. */
export function verifyConsensus(folder: string): Promise<string | null> {
  return consensus.check(folder);
}

interface Check {
  readonly folder: string;
  readonly tell: (damaged: string | null) => void;
  readonly fail: (error: TroupeError) => void;
}

/** A child that checks folders one after the other, as they are asked for. It ends when it has had none for a while. */
class Checker {
  private child: ChildProcess | null = null;
  /** What the child was asked, oldest first: it works on the first one. */
  private asked: Check[] = [];
  private watch: NodeJS.Timeout | undefined;
  /** The child was killed for a walk that did not come to an end. */
  private isOutOfPatience = false;
  /** The child has the first folder open. */
  private hasOpened = false;

  constructor(private readonly kind: Kind) {}

  check(folder: string): Promise<string | null> {
    // One that was never made to the end holds nothing that was acknowledged; one whose file is gone is found out at opening.
    if (!isMarkedMade(replicaFolder(folder)) || !existsSync(dataFile(folder))) return Promise.resolve(null);
    return new Promise((tell, fail) => {
      this.asked.push({ folder, tell, fail });
      this.child ??= this.start();
      ask(this.child, folder);
      if (this.asked.length === 1) this.watchNext();
    });
  }

  private start(): ChildProcess {
    const child = childProcess().fork(fileURLToPath(threadEntry('checker')), [CHILD_ARGUMENTS[this.kind]], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    let reason: string | null = null;
    let hasBegun = false;
    this.isOutOfPatience = false;
    this.hasOpened = false;
    child.on('message', (verdict: FileVerdict | typeof CAN_BEGIN | typeof HAS_OPENED) => {
      if (verdict === CAN_BEGIN) {
        hasBegun = true;
        return;
      }
      this.hasOpened = verdict === HAS_OPENED;
      if (verdict === HAS_OPENED) return;
      const check = this.asked.shift();
      if ('damaged' in verdict) check?.tell(verdict.damaged);
      else check?.fail(uncheckable(check.folder, verdict.lacking));
      this.watchNext();
    });
    child.on('error', (error) => {
      reason = `failed: ${error.message}`;
      // A process that was not even started ends neither way.
      if (child.pid === undefined) this.failAll(child, error.message);
    });
    // The last messages may come after the exit, never after the disconnection.
    let open = 2;
    const end = (): void => {
      if (--open > 0) return;
      const { exitCode, signalCode } = child;
      if (signalCode === 'SIGKILL' && !this.isOutOfPatience) {
        this.failAll(child, 'the process that reads it was killed, perhaps for lack of memory');
        return;
      }
      if (!hasBegun) {
        this.failAll(child, `the process that reads it could not begin (${reason ?? signalCode ?? `status ${exitCode}`})`);
        return;
      }
      const how = this.isOutOfPatience ? 'does not come to an end' : `ended the process (${signalCode ?? `status ${exitCode}`})`;
      this.lose(child, reason ?? how);
    };
    child.on('exit', end);
    child.on('disconnect', end);
    return child;
  }

  /** The folder that it worked on is what ended it, or a lack while it was opened; another child checks the rest. */
  private lose(child: ChildProcess, how: string): void {
    if (this.child !== child) return;
    this.child = null;
    const [crashed, ...rest] = this.asked;
    this.asked = rest;
    if (this.hasOpened || this.isOutOfPatience) crashed?.tell(`${dataFile(crashed.folder)} is damaged: reading it ${how}`);
    else crashed?.fail(uncheckable(crashed.folder, `opening it ${how}`));
    if (rest.length > 0) {
      this.child = this.start();
      for (const { folder } of rest) ask(this.child, folder);
    }
    this.watchNext();
  }

  /** Nothing can be said of any file now. */
  private failAll(child: ChildProcess, lacking: string): void {
    if (this.child !== child) return;
    this.child = null;
    clearTimeout(this.watch);
    for (const { fail, folder } of this.asked.splice(0)) fail(uncheckable(folder, lacking));
  }

  /** Gives the child its time for the next folder, or, when there is none, until it ends; idle it keeps no process alive. */
  private watchNext(): void {
    clearTimeout(this.watch);
    const { child } = this;
    if (child === null) return;
    const [next] = this.asked;
    if (next === undefined) {
      child.unref();
      child.channel?.unref();
      this.watch = setTimeout(() => {
        this.child = null;
        child.disconnect();
      }, IDLE_MS).unref();
      return;
    }
    child.ref();
    child.channel?.ref();
    const bytes = statSync(dataFile(next.folder), { throwIfNoEntry: false })?.size ?? 0;
    this.watch = setTimeout(
      () => {
        this.isOutOfPatience = true;
        child.kill('SIGKILL');
      },
      PATIENCE_MS + bytes / BYTES_PER_MS,
    );
  }
}

/** A child that could not be started has no way to be asked; its `error` event comes next. */
function ask(child: ChildProcess, folder: string): void {
  if (child.pid !== undefined) child.send(folder);
}

function uncheckable(folder: string, lacking: string): TroupeError {
  const advice = 'retry; if it stays so, give this node more files (`ulimit -n`), addresses (`ulimit -v`) or memory';
  return new TroupeError('storage', `${dataFile(folder)} cannot be checked now: ${lacking}; ${advice}`, { outcome: 'none' });
}

const replicas = new Checker('replica');
const consensus = new Checker('consensus');

function replicaFolder(folder: string): string {
  return path.dirname(lmdbFolder(folder));
}
