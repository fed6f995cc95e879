/** `troupe verify`: looks through a storage folder that no node has open, and prints what is wrong. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadCollection } from '../actors/collection/store.js';
import { decodeAliases } from '../actors/node/alias-store.js';
import { errorFacts, TroupeError } from '../protocols/errors.js';
import { initChecksum } from '../storage/disk/checksum.js';
import { verifyConsensus } from '../storage/verify/verify-lmdb.js';
import { verifyShard } from '../storage/verify/verify-shard.js';
import { lockStorage } from './lock/storage-lock.js';

/** How long a node that ends is waited for. */
const LOCK_PATIENCE_MS = 1000;

export interface StorageReport {
  readonly collections: number;
  readonly shards: number;
  readonly points: number;
  readonly problems: number;
}

/**
 * Looks through everything below a storage folder. print: gets a line for each problem, which begins with the collection and the shard that has it.
 * Errors: if the folder is in use, or is none.
 */
export async function verifyStorage(folder: string, print: (line: string) => void): Promise<StorageReport> {
  if (!existsSync(join(folder, 'collections'))) throw new Error(`${folder} is no storage folder: it has no folder \`collections\``);
  const lock = await lockStorage(folder, LOCK_PATIENCE_MS, () => {});
  try {
    return await verifyOwned(folder, print);
  } finally {
    lock.release();
  }
}

async function verifyOwned(folder: string, print: (line: string) => void): Promise<StorageReport> {
  await initChecksum();
  const report = { collections: 0, shards: 0, points: 0, problems: 0 };
  const tell = (line: string): void => {
    report.problems++;
    print(line);
  };
  const aliases = join(folder, 'aliases.json');
  const [aliasProblem] = existsSync(aliases) ? await attempt(async () => decodeAliases(readFileSync(aliases), aliases)) : [null];
  if (aliasProblem !== null) tell(aliasProblem);
  const consensus = await verifyConsensus(join(folder, 'consensus')).catch((error: unknown) => errorFacts(error).detail);
  if (consensus !== null) tell(consensus);
  for (const name of namesIn(join(folder, 'collections'))) {
    const path = join(folder, 'collections', name);
    report.collections++;
    const [problem, stored] = await attempt(() => loadCollection(path, name));
    if (stored === null) {
      tell(`${name}: ${problem}; its shards are not looked through`);
      continue;
    }
    for (const shard of namesIn(path).filter((one) => /^\d+$/.test(one))) {
      const { points, problems } = await verifyShard(join(path, shard), stored.config);
      report.shards++;
      report.points += points;
      for (const one of problems) tell(`${stored.name}/${shard}: ${one}`);
    }
  }
  return report;
}

/** What is wrong, or the value. */
async function attempt<T>(read: () => Promise<T>): Promise<readonly [problem: string, value: null] | readonly [problem: null, value: T]> {
  try {
    return [null, await read()];
  } catch (error) {
    return [error instanceof TroupeError ? error.detail : String(error), null];
  }
}

/** Folders; those that a node makes or removes have a dot before their name. */
function namesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : [])).sort();
}
