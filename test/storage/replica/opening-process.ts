/**
 * A process that opens replicas while something is lacking, for `opening.test.ts`: what goes wrong within LMDB ends it. Its first argument
 * says what is lacking, its second is a folder. Prints one line of JSON for each try: `null` if the replica is open, else the error's facts.
 */

import { closeSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorFacts } from '../../../protocols/errors.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { limitAddresses, statusBytes, takeDescriptors } from '../../machine.js';
import { Replica, specOf } from './support.js';

const [lack, folder] = process.argv.slice(2) as [string, string];
const KILOBYTES_FREE = [0, 4, 8, 12, 16, 24, 32, 64, 96, 128, 192, 256, 300, 340, 400, 600, 1000];
const DESCRIPTORS_FREE = 24;
const SMALL_REPLICAS = 30;
/** Node.js itself needs some, and ends the process where it gets none. */
const MEGABYTES_FREE = [64, 128, 200, 260, 320, 512, 1100, 4096];

async function tryToOpen(name: string): Promise<void> {
  const replica = await Replica.open(specOf(path.join(folder, name))).catch((error: unknown) => {
    console.log(JSON.stringify(errorFacts(error)));
    return null;
  });
  if (replica === null) return;
  await replica.close();
  console.log('null');
}

/** What one commit needs, beside the rest of a replica, which has segments in memory of its own. */
async function tryEnvironment(name: string): Promise<void> {
  try {
    const environment = Environment.open(path.join(folder, name), () => {});
    console.log('null');
    await environment.close();
  } catch (error) {
    console.log(JSON.stringify(errorFacts(error)));
  }
}

async function withoutDescriptors(): Promise<void> {
  await tryToOpen('first');
  for (let free = 0; free <= DESCRIPTORS_FREE; free++) {
    const held = takeDescriptors();
    for (const descriptor of held.splice(0, free)) closeSync(descriptor);
    await tryEnvironment(`free${free}`);
    for (const descriptor of held) closeSync(descriptor);
  }
}

async function withoutAddresses(): Promise<void> {
  await tryToOpen('first');
  for (const free of MEGABYTES_FREE) {
    const restore = limitAddresses(free * 2 ** 20);
    await tryEnvironment(`free${free}`);
    restore();
  }
}

async function withoutDisk(): Promise<void> {
  for (const free of KILOBYTES_FREE) {
    const filler = path.join(folder, 'filler');
    mkdirSync(path.join(folder, `free${free}`), { recursive: true });
    // Each page of a file costs room of its own.
    writeFileSync(path.join(folder, 'room'), new Uint8Array(free * 1024));
    try {
      writeFileSync(filler, new Uint8Array(64 * 2 ** 20));
    } catch {}
    rmSync(path.join(folder, 'room'));
    await tryToOpen(`free${free}`);
    rmSync(filler);
    // With room again.
    await tryToOpen(`free${free}`);
    rmSync(path.join(folder, `free${free}`), { recursive: true });
  }
}

/** Prints GiB of addresses that each of many small replicas takes. */
async function countAddresses(): Promise<void> {
  const taken = (): number => statusBytes('VmSize') / 2 ** 30;
  const replicas = [await Replica.open(specOf(path.join(folder, 'first')))];
  const before = taken();
  for (let number = 0; number < SMALL_REPLICAS; number++) replicas.push(await Replica.open(specOf(path.join(folder, String(number)))));
  console.log(JSON.stringify((taken() - before) / SMALL_REPLICAS));
  for (const replica of replicas) await replica.close();
}

if (lack === 'nothing, for many') await countAddresses();
else if (lack === 'descriptors') await withoutDescriptors();
else if (lack === 'addresses') await withoutAddresses();
else if (lack === 'disk') await withoutDisk();
else await tryToOpen('.');
