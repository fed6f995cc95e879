/** For `put-kill.test.ts`: puts archives and removes some of them until it is killed. It prints what it is told. */

import { writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { LocalSnapshotStore } from '../../../storage/snapshot-store/local.js';
import { bytesOf, FULL, noEnd, sha256Of } from './support.js';

const [folder = '', temp = '', round = ''] = process.argv.slice(2);
const BYTES = 2_000_000;

const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
const contents = [bytesOf(BYTES, 1), bytesOf(BYTES + 1, 2)];
const sums = contents.map(sha256Of);

/** At once, so that it is heard whatever comes next. */
function tell(line: string): void {
  writeSync(1, `${line}\n`);
}

for (let number = 0; ; number++) {
  const name = `${round}-${number}.snapshot`;
  const file = join(temp, name);
  const which = number % 2;
  writeFileSync(file, contents[which] as Buffer);
  if (number === 0) tell('begun');
  await store.put(FULL, name, file, sums[which] as string, noEnd());
  tell(`kept ${name}`);
  await store.put({ kind: 'shard', collection: 'c.', shardId: 3 }, name, await again(number), sums[which] as string, noEnd());
  if (number % 3 !== 2) continue;
  tell(`removing ${name}`);
  await store.remove(FULL, name);
}

async function again(number: number): Promise<string> {
  const file = join(temp, `again-${number}`);
  writeFileSync(file, contents[number % 2] as Buffer);
  return file;
}
