/** `npm run hostile`: see `run.ts`. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scriptOptions } from '../../script-options.js';
import { runHostile } from './run.js';

const USAGE = `npm run hostile -- [options]: requests made to harm are sent to a node with little memory, with honest ones between them

  --requests N        default 1000000
  --minutes N         at most, default 60
  --connections N     default 8
  --memory MB         of the container that the node believes to be in, default 512
  --absurd-every N    each N-th request asks for absurd amounts, default 1000
  --changes-every N   each N-th request makes or deletes collections, default 100
  --seed S            default: another one each time

Exit code 1 when something must not be.`;

const values = scriptOptions(USAGE, {
  requests: { type: 'string', default: '1000000' },
  minutes: { type: 'string', default: '60' },
  connections: { type: 'string', default: '8' },
  memory: { type: 'string', default: '512' },
  'absurd-every': { type: 'string', default: '1000' },
  'changes-every': { type: 'string', default: '100' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
});
const wrong = (['requests', 'minutes', 'connections', 'memory', 'absurd-every', 'changes-every', 'seed'] as const).find(
  (name) => !(Number(values[name]) > 0),
);
if (wrong !== undefined) {
  process.stderr.write(`--${wrong}: expected a number above 0, got ${values[wrong]}\n`);
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'troupe-hostile-'));
process.stdout.write(`seed ${values.seed}\n`);
const report = await runHostile({
  folder,
  seed: Number(values.seed),
  requests: Number(values.requests),
  milliseconds: Number(values.minutes) * 60_000,
  connections: Number(values.connections),
  memoryMb: Number(values.memory),
  absurdEvery: Number(values['absurd-every']),
  changesEvery: Number(values['changes-every']),
  tell: (line) => process.stderr.write(`${line}\n`),
});
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
process.exit(report.violations.length === 0 ? 0 : 1);
