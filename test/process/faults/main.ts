/** `npm run faults`: see `run.ts`. */

import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { seededRandom } from '../../../ops/random.js';
import { scriptOptions } from '../../script-options.js';
import { ENDINGS, type Ending, type RunReport } from './ending.js';
import { noFailingCalls } from './failing-calls.js';
import { KINDS, MODES } from './kinds.js';
import {
  folderOf,
  groupsOf,
  inLayers,
  nameOf,
  nextTask,
  PHASES,
  type Phase,
  PLACES,
  type Place,
  type Run,
  sortOf,
  sorts,
} from './order.js';
import { Runs, TOGETHER_MAX } from './run.js';
import { ticksOf } from './world.js';

const USAGE = `npm run faults -- [options]: the N-th call to the system of each kind fails, for all N, while a node or two work or start

  --count                        only tell how many runs there are
  --part I/N                     the I-th of N equal parts
  --sample N                     N runs of each sort, by chance
  --only NAME,NAME               runs by name, as one.work.write.once.17
  --alone                        each run in a folder and processes of its own, instead of ${TOGETHER_MAX} in one folder
  --side-by-side N               N folders at once (4)
  --places one,first,second      a node of its own, the first or the second of two
  --phases work,start            while it works, while it starts
  --kinds open,write             some of ${KINDS.map(({ name }) => name).join()}
  --modes once,while             one call fails, or all for a while
  --minutes M                    stop after so long
  --seed S                       default: another one each time
  --folder F                     where reports go; with --continue, runs that have one there are passed over

Exit code 1 when something must not be, 2 when nothing can be tried.`;

const values = scriptOptions(USAGE, {
  part: { type: 'string', default: '1/1' },
  sample: { type: 'string' },
  only: { type: 'string' },
  count: { type: 'boolean', default: false },
  alone: { type: 'boolean', default: false },
  'side-by-side': { type: 'string', default: '4' },
  places: { type: 'string', default: PLACES.join() },
  phases: { type: 'string', default: PHASES.join() },
  kinds: { type: 'string', default: KINDS.map(({ name }) => name).join() },
  modes: { type: 'string', default: MODES.join() },
  minutes: { type: 'string' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  folder: { type: 'string' },
  continue: { type: 'boolean', default: false },
});

const refuse = (message: string): never => {
  process.stderr.write(`${message}\n`);
  process.exit(2);
};

function some<Name extends string>(option: string, given: string, names: readonly Name[]): Name[] {
  const words = given.split(',');
  if (!words.every((word) => (names as readonly string[]).includes(word)))
    refuse(`--${option}: expected some of ${names.join()}, got ${given}`);
  return names.filter((name) => words.includes(name));
}

if (noFailingCalls !== false) refuse(noFailingCalls);
const [part = 0, parts = 0] = values.part.split('/').map(Number);
if (!(part >= 1 && part <= parts)) refuse(`--part: expected i/n, as 1/4, got ${values.part}`);
for (const option of ['sample', 'minutes', 'seed', 'side-by-side'] as const)
  if (values[option] !== undefined && !(Number(values[option]) >= 0)) refuse(`--${option}: expected a number, got ${values[option]}`);
const only = values.only?.split(',').map((name) => name.split('.'));
/** The words at one place of the names of `--only`, or those of another option. */
const wordsOf = (at: number, option: string): string => (only === undefined ? option : only.map((words) => words[at] ?? '').join());
const places = some('places', wordsOf(0, values.places), PLACES);
const phases = some('phases', wordsOf(1, values.phases), PHASES);
const kindNames = some(
  'kinds',
  wordsOf(2, values.kinds),
  KINDS.map(({ name }) => name),
);
const modes = some('modes', wordsOf(3, values.modes), MODES);
const kinds = KINDS.filter(({ name }) => kindNames.includes(name));

const folder = values.folder === undefined ? mkdtempSync(join(tmpdir(), 'troupe-faults-')) : resolve(values.folder);
mkdirSync(folder, { recursive: true });
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
say(`${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node.js ${process.version}`);
say(`npm run faults -- ${process.argv.slice(2).join(' ')}`);
say(`seed ${values.seed}; data and stories in ${folder}`);

/** One for each folder of which several are in use at once. */
const lanes = Array.from({ length: Math.max(1, Number(values['side-by-side'])) }, (_, at) => {
  const story = (line: string): void => appendFileSync(join(folder, `story-${at + 1}.log`), `${line}\n`);
  return { runs: new Runs(join(folder, `runs-${at + 1}`), story), story, has: null as string | null };
});
type Lane = (typeof lanes)[number];

/** By place and phase: how many N of each kind there are, and calls of all threads. Kept in the folder, for `--continue`. */
type CountsFile = Record<string, Record<string, { readonly most: number; readonly all: number }>>;
const countsFile = join(folder, 'counts.json');
const counts: CountsFile = values.continue && existsSync(countsFile) ? (JSON.parse(readFileSync(countsFile, 'utf8')) as CountsFile) : {};
await inLanes(
  places
    .flatMap((place) => phases.map((phase) => ({ place, phase })))
    .filter(({ place, phase }) => counts[`${place}.${phase}`] === undefined),
  folderOf,
  async ({ runs }, { place, phase }) => {
    const { all: calls, most } = await runs.count(place, phase);
    const own = KINDS.map(({ name }) => [name, { most: most.get(name) ?? 0, all: calls.get(name) ?? 0 }] as const);
    counts[`${place}.${phase}`] = Object.fromEntries(own);
    writeFileSync(countsFile, JSON.stringify(counts));
  },
);
const countOf = (place: Place, phase: Phase, kind: string) => counts[`${place}.${phase}`]?.[kind] ?? { most: 0, all: 0 };
for (const place of places)
  for (const phase of phases) {
    const shown = kinds.map(({ name }) => `${name} ${countOf(place, phase, name).most} (${countOf(place, phase, name).all})`);
    say(`${place}, ${phase}: N of each kind, and calls of all threads: ${shown.join(', ')}`);
  }
const all = allRuns();
/** What the table needs of a run; kept in the folder, for `--continue`. */
interface Line {
  readonly name: string;
  readonly sort: string;
  readonly ending: Ending;
  readonly failed: number;
  readonly stuck: boolean;
  readonly findings: readonly string[];
}

const linesFile = join(folder, 'runs.jsonl');
const before =
  values.continue && existsSync(linesFile)
    ? readFileSync(linesFile, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Line)
    : [];
const lines: Line[] = [...before];
const made = new Set(before.map(({ name }) => name));
const chosen = choose().filter((run) => values.only !== undefined || !made.has(nameOf(run)));
say(`${all.length} runs exist, ${made.size} were made before, ${chosen.length} are chosen`);
if (values.count) process.exit(0);

const deadline = performance.now() + Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
const cpuBefore = { tool: ticksOf('self'), all: ticksOf('self', true) };
/** Runs that found something together and nothing alone. */
let onlyTogether = 0;
/** Runs during which something went wrong that was none of theirs. */
let notMade = 0;
const groups = groupsOf(chosen, values.alone ? 1 : TOGETHER_MAX);
await inLanes(
  groups,
  ([first]) => folderOf(first as Run),
  async (lane, group) => {
    for (let rest: readonly Run[] = group; rest.length > 0 && performance.now() <= deadline; ) {
      const reports = await carryOut(lane, rest).catch((error: Error) => error);
      if (reports instanceof Error) {
        notMade += rest.length;
        say(`!!! not made: npm run faults -- --only ${rest.map(nameOf).join()}: ${reports.stack}`);
        return;
      }
      const own = rest.slice(0, reports.length);
      rest = rest.slice(reports.length);
      tell(own, reports);
      if (reports.length === 1 || reports.every(({ findings }) => findings.length === 0)) keep(own, reports);
      else await eachAlone(lane, own);
    }
  },
);
table();
const wrong = lines.filter(({ findings }) => findings.length > 0).length;
const count = lines.length - before.length;
say(`${count} of ${chosen.length} runs, ${wrong} with findings, ${onlyTogether} times findings of runs together and of none alone`);
const secondsEach = (ticks: number): string => (ticks / 100 / Math.max(1, count)).toFixed(2);
say(
  `${secondsEach(ticksOf('self', true) - cpuBefore.all)} s of CPU a run, ${secondsEach(ticksOf('self') - cpuBefore.tool)} s of it of this script`,
);
process.exit(wrong + onlyTogether + notMade === 0 ? 0 : 1);

/** Carries out tasks, each in a folder that is free. folderFor: which prepared folder a task needs. */
async function inLanes<Task>(
  tasks: readonly Task[],
  folderFor: (task: Task) => string,
  act: (lane: Lane, task: Task) => Promise<void>,
): Promise<void> {
  const waiting = [...tasks];
  await Promise.all(
    lanes.map(async (lane) => {
      while (waiting.length > 0) {
        const others = lanes.filter((other) => other !== lane).map(({ has }) => has);
        const [task] = waiting.splice(nextTask(waiting.map(folderFor), lane.has, others), 1) as [Task];
        lane.has = folderFor(task);
        await act(lane, task);
      }
    }),
  );
}

async function eachAlone(lane: Lane, own: readonly Run[]): Promise<void> {
  say('    each of these alone:');
  let found = 0;
  for (const run of own) {
    const alone = await carryOut(lane, [run]);
    tell([run], alone);
    keep([run], alone);
    found += alone.filter(({ findings }) => findings.length > 0).length;
  }
  if (found === 0) onlyTogether += 1;
}

function keep(own: readonly Run[], reports: readonly RunReport[]): void {
  for (const [at, { ending, failed, stuck, findings }] of reports.entries()) {
    const run = own[at] as Run;
    const line = { name: nameOf(run), sort: sortOf(run), ending, failed: failed.length, stuck: stuck !== null, findings };
    lines.push(line);
    appendFileSync(linesFile, `${JSON.stringify(line)}\n`);
  }
}

async function carryOut({ runs, story }: Lane, some: readonly Run[]): Promise<readonly RunReport[]> {
  story(`=== ${some.map(nameOf).join()}`);
  const reports = await runs.together(some);
  for (const [at, { ending, exit, stuck, findings, tally, failed }] of reports.entries())
    story(`${nameOf(some[at] as Run)} ${JSON.stringify({ ending, exit, stuck, findings, tally }, null, 2)}\n${failed.join('\n')}`);
  return reports;
}

/** All runs that there are, in their order. */
function allRuns(): Run[] {
  return places.flatMap((place) =>
    phases.flatMap((phase) =>
      kinds.flatMap((kind) =>
        modes.flatMap((mode) =>
          Array.from({ length: countOf(place, phase, kind.name).most }, (_, at): Run => ({ place, phase, kind, mode, n: at + 1 })),
        ),
      ),
    ),
  );
}

/** What a reader of the output should know of runs at once. */
function tell(some: readonly Run[], reports: readonly RunReport[]): void {
  const names = some.map(nameOf).join();
  for (const [at, { ending, exit, stuck, findings, tally, failed }] of reports.entries()) {
    if (values.only === undefined && findings.length === 0 && stuck === null) continue;
    const which = reports.length > 1 ? ` (${nameOf(some[at] as Run)})` : '';
    say(`${findings.length > 0 ? '!!! ' : ''}npm run faults -- --only ${names}${which}: ${ending}, ${JSON.stringify(exit)}`);
    for (const line of [...findings, ...(stuck === null ? [] : [`stuck: ${stuck}`])]) say(`    ${line}`);
    for (const line of failed.slice(0, 5)) say(`    ${line}`);
    if (values.only !== undefined) for (const line of tally.told) say(`    ${line}`);
  }
}

/** Those of the options: some by name, a sample of each sort, a part. */
function choose(): Run[] {
  if (only !== undefined)
    return only.map(([place, phase, kind, mode, n]) => {
      const own = all.find((run) => sortOf(run) === [place, phase, kind, mode].join('.'));
      // An n beyond those that were counted can be tried.
      return own === undefined || !(Number(n) >= 1) ? refuse(`--only: ${values.only} names no run`) : { ...own, n: Number(n) };
    });
  const own = inLayers(all).filter((_, at) => at % parts === part - 1);
  if (values.sample === undefined) return own;
  const random = seededRandom(Number(values.seed));
  return [...sorts(own).values()].flatMap((sort) => {
    while (sort.length > Number(values.sample)) sort.splice(random.integer(sort.length), 1);
    return sort;
  });
}

/** What became of the runs, by place, phase, kind and mode. */
function table(): void {
  say(`| node | phase | kind | | runs of all | failed calls | ${ENDINGS.join(' | ')} | stuck until restart | findings |`);
  say(`|${'---|'.repeat(ENDINGS.length + 8)}`);
  const existing = sorts(all);
  for (const [sort, own] of existing) {
    const done = lines.filter((line) => line.sort === sort);
    if (done.length === 0) continue;
    const [place, phase, kind, mode] = sort.split('.');
    const failed = done.reduce((sum, line) => sum + line.failed, 0);
    const counts = ENDINGS.map((ending) => done.filter((line) => line.ending === ending).length);
    const stuck = done.filter((line) => line.stuck).length;
    const found = done.filter(({ findings }) => findings.length > 0).length;
    const what = KINDS.find(({ name }) => name === kind)?.what;
    say(
      `| ${place} | ${phase} | ${what} | ${mode} | ${done.length} of ${own.length} | ${failed} | ${counts.join(' | ')} | ${stuck} | ${found} |`,
    );
  }
}
