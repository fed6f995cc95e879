/**
 * For `lmdb-growth.test.ts`. As a thread: reads an environment for as long as another thread writes it. As a process: writes one until its map
 * must grow, and there are no addresses.
 */

import { parentPort, workerData } from 'node:worker_threads';
import { errorFacts } from '../../../protocols/errors.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { SnapshotReader } from '../../../storage/disk/lmdb-reader.js';
import { limitAddresses } from '../../machine.js';

export const VALUE_BYTES = 2 ** 20;

export function keyOf(number: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32BE(number);
  return key;
}

/** Counts the values, and those that are not what was written, until the last one is there. */
async function readAll(folder: string, count: number): Promise<void> {
  const reader = SnapshotReader.openReadOnly(folder);
  let read = 0;
  let wrong = 0;
  for (let done = false; !done; ) {
    reader.refresh();
    for (let number = 0; number < count; number++) {
      const value = reader.peek('meta', keyOf(number));
      if (value === undefined) break;
      read++;
      if (value.length !== VALUE_BYTES || value[0] !== number % 256 || value.at(-1) !== number % 256) wrong++;
      done = number === count - 1;
    }
    reader.release();
    parentPort?.postMessage({ read, wrong, done });
    await new Promise(setImmediate);
  }
  await reader.close();
}

function fill(environment: Environment, from: number, to: number): void {
  environment.write(() => {
    for (let number = from; number < to; number++) environment.put('meta', keyOf(number), Buffer.alloc(VALUE_BYTES, number % 256));
  });
}

async function growWithoutAddresses(folder: string): Promise<void> {
  const environment = Environment.open(folder, () => {});
  fill(environment, 0, 200);
  const restore = limitAddresses(128 * 2 ** 20);
  const outcomes: unknown[] = [];
  const attempt = (from: number, to: number): void => {
    try {
      fill(environment, from, to);
      outcomes.push(null);
    } catch (error) {
      outcomes.push(errorFacts(error));
    }
  };
  attempt(200, 300);
  outcomes.push([0, 199, 200].map((number) => environment.get('meta', keyOf(number))?.length ?? null));
  restore();
  attempt(200, 300);
  outcomes.push([0, 199, 200, 299].map((number) => environment.get('meta', keyOf(number))?.length ?? null));
  console.log(JSON.stringify(outcomes));
  await environment.close();
}

if (parentPort !== null) {
  const { count, folder } = workerData as { folder: string; count: number };
  void readAll(folder, count);
} else if (process.argv[1]?.endsWith('growing-process.js')) {
  void growWithoutAddresses(process.argv[2] as string);
}
