/** `npm run chaos`: see `run.ts`; with `--points`, `point-run.ts`. */

import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { scriptOptions } from '../../script-options.js';
import { FAULTS } from './faults.js';
import { runPointChaos } from './point-run.js';
import { runChaos } from './run.js';

const USAGE = `npm run chaos -- [options]: nodes of one cluster are killed, stopped, cut off and restarted while clients write and read

  --minutes N      how long, default 10
  --nodes N        default 5
  --clients N      default 4
  --faults A,B     some of ${FAULTS.join()}, default all
  --points         clients write and read points, instead of configuration alone
  --shards N       with --points: shards of the collection, default 6
  --overlapping    with --points: faults overlap
  --seed S         default: another one each time
  --folder F       data and story.log, default a new temporary folder

Exit code 1 when something must not be.`;

const values = scriptOptions(USAGE, {
  minutes: { type: 'string', default: '10' },
  nodes: { type: 'string', default: '5' },
  clients: { type: 'string', default: '4' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  folder: { type: 'string' },
  faults: { type: 'string', default: FAULTS.join() },
  points: { type: 'boolean', default: false },
  overlapping: { type: 'boolean', default: false },
  shards: { type: 'string', default: '6' },
});
const wrong = (['minutes', 'nodes', 'clients', 'seed', 'shards'] as const).find((name) => !(Number(values[name]) > 0));
if (wrong !== undefined) {
  process.stderr.write(`--${wrong}: expected a number above 0, got ${values[wrong]}\n`);
  process.exit(2);
}
const given = values.faults.split(',');
const faults = FAULTS.filter((fault) => given.includes(fault));
if (faults.length < given.length) {
  process.stderr.write(`--faults: expected some of ${FAULTS.join()}, got ${values.faults}\n`);
  process.exit(2);
}
const folder = values.folder === undefined ? mkdtempSync(join(tmpdir(), 'troupe-chaos-')) : resolve(values.folder);
mkdirSync(folder, { recursive: true });
process.stdout.write(`seed ${values.seed}, data and story.log in ${folder}\n`);
const options = {
  nodes: Number(values.nodes),
  milliseconds: Number(values.minutes) * 60_000,
  clients: Number(values.clients),
  seed: Number(values.seed),
  folder,
  faults,
};
const report = values.points
  ? await runPointChaos({ ...options, shards: Number(values.shards), overlapping: values.overlapping })
  : await runChaos(options);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
process.exit(report.violations.length === 0 ? 0 : 1);
