/**
 * A smaller file takes the place of a replica's database (Room-R6, Room-R10) in a process that is killed in the middle, or whose disk fails then.
 * Nothing that was acknowledged is lost: not in that process, and not at any later start.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { compileFailingCalls, FailingCalls, noFailingCalls, variablesFor } from '../../process/faults/failing-calls.js';
import type { FaultPlan } from '../../process/faults/kinds.js';
import { addFreePages, FREED_RECORDS } from './free-pages.js';
import { Replica, specOf, temporaryFolder, upsert } from './support.js';

const CHILD = fileURLToPath(new URL('./exchange-child.js', import.meta.url));
/** Their payloads are 1.3 MB: the copy of them is written in two parts. */
const IDS = Array.from({ length: 160 }, (_, id) => id);
const TEXT = 'x'.repeat(8000);
/** Every call from the first one on. */
const ALWAYS = 2 ** 31 - 1;
const WRITES = ['write', 'writev', 'pwrite64', 'pwritev'] as const;
const SYNCS = ['fsync', 'fdatasync'] as const;
/** How the system calls the file that the smaller one has replaced. */
const REPLACED = 'lmdb/data.mdb (deleted)';

interface Answer {
  readonly value?: unknown;
  readonly error?: string;
  readonly isFatal?: boolean;
}

/** What fails: these calls on files of the replica whose paths begin so. */
type Failing = Pick<FaultPlan, 'calls' | 'error'> & { readonly on: string; readonly first?: number };

/** Replicas with the points, without and with free pages. */
let prepared: { readonly folder: string; readonly library: string; readonly full: string; readonly free: string } | null = null;

before(async () => {
  if (noFailingCalls !== false) return;
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-exchange-'));
  prepared = { folder, library: compileFailingCalls(folder), full: path.join(folder, 'full'), free: path.join(folder, 'free') };
  const { free, full } = prepared;
  const replica = await Replica.open(specOf(full));
  replica.apply(upsert(IDS.map((id) => ({ id, seed: id, payload: { id, text: TEXT } }))));
  await replica.close();
  cpSync(full, free, { recursive: true });
  const again = await Replica.open(specOf(free));
  addFreePages(again, FREED_RECORDS);
  await again.close();
});

after(() => {
  if (prepared !== null) rmSync(prepared.folder, { recursive: true, force: true });
});

/** A process with a replica, whose calls can be made to fail. */
class Child {
  readonly folder: string;
  readonly #log: string;
  readonly #calls: FailingCalls;
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown[]>;
  readonly #lines: AsyncIterator<string>;

  constructor(t: TestContext, from: 'full' | 'free', failing: Failing) {
    const { [from]: files, library } = prepared as NonNullable<typeof prepared>;
    // As the system tells the paths of files.
    const home = realpathSync(temporaryFolder(t));
    this.folder = path.join(home, 'r');
    cpSync(files, this.folder, { recursive: true });
    this.#log = path.join(home, 'failed.log');
    this.#calls = new FailingCalls(home, path.join(this.folder, failing.on), this.#log);
    const variables = Object.fromEntries(variablesFor(library).map((variable) => variable.split('=') as [string, string]));
    const env = { ...process.env, ...variables };
    this.#process = spawn(process.execPath, [CHILD, this.folder], { cwd: home, env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exited = once(this.#process, 'close');
    this.#process.stdin?.on('error', () => {});
    this.#lines = createInterface(this.#process.stdout as NonNullable<ChildProcess['stdout']>)[Symbol.asyncIterator]();
    t.after(() => {
      this.#process.kill('SIGKILL');
      this.#calls.close();
    });
  }

  arm({ calls, error, first = 1 }: Failing): void {
    this.#calls.arm({ calls, error, first, last: ALWAYS, filesOnly: true });
  }

  disarm(): void {
    this.#calls.disarm();
  }

  /** The answer to a step; null: the process has ended in it. */
  async ask(step: string): Promise<Answer | null> {
    this.#process.stdin?.write(`${step}\n`);
    const { done, value } = await this.#lines.next();
    return done === true ? null : (JSON.parse(value) as Answer);
  }

  /** Takes steps that must succeed. Returns the value of the last one. */
  async tell(...steps: string[]): Promise<unknown> {
    let answer: Answer | null = null;
    for (const step of steps) {
      answer = await this.ask(step);
      assert.ok(answer !== null && 'value' in answer, `${step}: ${JSON.stringify(answer)}`);
    }
    return answer?.value;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  async signal(): Promise<unknown> {
    return (await this.#exited)[1];
  }

  /** The calls that failed. */
  failed(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8') : '';
  }
}

/** Two starts after the process has ended: each finds all points, and takes writes that the next one finds. */
async function mustStartWith(folder: string, ids: readonly number[], what: string): Promise<void> {
  const known = [...ids];
  for (let start = 0; start < 2; start++) {
    if (start === 0) assert.deepEqual(await verifyReplicas([folder]), new Map([[folder, null]]), what);
    const replica = await Replica.open(specOf(folder));
    try {
      const points = [...replica.points().values()].sort((a, b) => Number(a.payload.id) - Number(b.payload.id));
      const found = points.map(({ payload }) => Number(payload.id));
      assert.deepEqual([found, points.filter(({ payload }) => payload.text === TEXT).length], [known, IDS.length], what);
      assert.deepEqual([replica.warnings, existsSync(path.join(folder, 'compact'))], [[], false], what);
      known.push(1000 + start);
      replica.apply(upsert([{ id: 1000 + start, seed: start, payload: { id: 1000 + start } }]));
    } finally {
      await replica.close();
    }
  }
}

const KILLED = 'SIGKILL';

/** What is done before each step, and the points that have been acknowledged then. */
const BEFORE: Readonly<
  Record<string, { readonly from: 'full' | 'free'; readonly steps: readonly string[]; readonly told: readonly number[] }>
> = {
  // Of a replica whose file is worth it.
  open: { from: 'free', steps: [], told: IDS },
  copy: { from: 'full', steps: ['open', 'read', 'free', 'write 300'], told: [...IDS, 300] },
  take: { from: 'full', steps: ['open', 'read', 'free', 'write 300', 'copy'], told: [...IDS, 300] },
  'write 302': { from: 'full', steps: ['open', 'read', 'free', 'write 300', 'copy', 'take', 'write 301'], told: [...IDS, 300, 301] },
};

const MOMENTS: Readonly<Record<string, { readonly steps: readonly string[]; readonly failing: Failing }>> = {
  'before the copy is whole': { steps: ['open', 'copy'], failing: { calls: WRITES, on: 'compact/data.mdb', first: 2, error: KILLED } },
  'before the copy is on disk': { steps: ['open', 'copy'], failing: { calls: SYNCS, on: 'compact/data.mdb', error: KILLED } },
  'before the rename': { steps: ['open', 'take'], failing: { calls: ['rename'], on: 'lmdb/lock.mdb', error: KILLED } },
  'between the two renames': { steps: ['open', 'take'], failing: { calls: ['rename'], on: 'lmdb/data.mdb', error: KILLED } },
  'before the rename is on disk': { steps: ['open', 'take'], failing: { calls: ['fsync'], on: 'lmdb', error: KILLED } },
  'before the mark': { steps: ['take'], failing: { calls: WRITES, on: REPLACED, error: KILLED } },
  'in the middle of the mark': { steps: ['take'], failing: { calls: SYNCS, on: REPLACED, error: KILLED } },
  'after the mark, in the next write': { steps: ['write 302'], failing: { calls: SYNCS, on: 'lmdb/data.mdb', error: KILLED } },
};

test('a process that is killed while a smaller file takes the place of its database has all that it told of at every later start', {
  skip: noFailingCalls,
}, async (t) => {
  for (const [moment, { failing, steps }] of Object.entries(MOMENTS))
    for (const step of steps) {
      const { child, told, what } = await faulty(t, moment, step, failing);
      assert.equal(await child.ask(step), null, what);
      assert.equal(await child.signal(), 'SIGKILL', what);
      assert.match(child.failed(), /SIGKILL/, what);
      await mustStartWith(child.folder, told, what);
    }
});

/** Of the disk, once the smaller file is in its place. */
const LATE_FAILURES: Readonly<Record<string, Failing & { readonly eachInTurn?: true }>> = {
  'the mark is not written': { calls: WRITES, on: REPLACED, error: 'EIO', eachInTurn: true },
  'there is no room for the mark': { calls: WRITES, on: REPLACED, error: 'ENOSPC' },
  'the mark is not on disk': { calls: SYNCS, on: REPLACED, error: 'EIO' },
  'the rename is not on disk': { calls: ['fsync'], on: 'lmdb', error: 'EIO' },
};

test('a replica that cannot leave the file that a smaller one has replaced takes no writes until it is opened again, with all that it told of', {
  skip: noFailingCalls,
}, async (t) => {
  for (const [failure, failing] of Object.entries(LATE_FAILURES))
    for (let first = 1, fails = true; fails && (first === 1 || failing.eachInTurn); first++) {
      const { child, told, what } = await faulty(t, `${failure} (${first})`, 'take', { ...failing, first });
      const taken = await child.ask('take');
      fails = child.failed() !== '';
      assert.ok(fails || first > 1, `${what}: no call has failed`);
      if (!fails) assert.ok(taken !== null && 'value' in taken, what);
      else if (taken !== null && (await goesOn(child, taken, told, what))) told.push(302);
      child.kill();
      await child.signal();
      await mustStartWith(child.folder, told, what);
    }
});

/** Whether the process has opened the replica again, and written. LMDB's message about a page that cannot be written may end it before (Room-R8). */
async function goesOn(child: Child, taken: Answer, told: readonly number[], what: string): Promise<boolean> {
  for (const answer of [taken, await child.ask('write 301')]) {
    if (answer === null) return false;
    assert.match(
      `${answer.error}`,
      /takes no more writes until it is opened again: .*(I\/O error|Input\/output error|EIO|No space|ENOSPC)/,
      what,
    );
    assert.equal(answer.isFatal, true, what);
  }
  // LMDB may read no more; nothing is seen that was not told of, or half.
  const read = await child.ask('read');
  if (read !== null && read.error === undefined) assert.deepEqual(read.value, told, what);
  const closed = await child.ask('close');
  child.disarm();
  const opened = await child.ask('open');
  const written = await child.ask('write 302');
  const seen = await child.ask('read');
  if (closed === null || opened === null || written === null || seen === null) return false;
  assert.deepEqual([closed.error, opened.error, written.error, seen.value], [undefined, undefined, undefined, [...told, 302]], what);
  return true;
}

test('a replica is not opened while it is not sure that the smaller file stays in its place: a power cut would bring back the one without later writes', {
  skip: noFailingCalls,
}, async (t) => {
  for (const step of ['open', 'take']) {
    const { child, told, what } = await faulty(t, 'the rename is not on disk', step, { calls: ['fsync'], on: 'lmdb', error: 'EIO' });
    assert.ok((await child.ask(step))?.error !== undefined, what);
    await child.tell('close');
    const { error } = (await child.ask('open')) ?? {};
    assert.match(`${error}`, /it is not sure that its smaller file stays in its place: EIO/, what);
    child.disarm();
    await child.tell('open', 'write 302');
    assert.deepEqual(await child.tell('read'), [...told, 302], what);
  }
});

test('a replica whose smaller file cannot be made, moved or cleared away goes on in the file that it has', {
  skip: noFailingCalls,
}, async (t) => {
  const early: Readonly<Record<string, { readonly steps: readonly string[]; readonly failing: Failing }>> = {
    'the copy is not written': {
      steps: ['open', 'copy'],
      failing: { calls: [...WRITES, 'unlink', 'rmdir'], on: 'compact', error: 'ENOSPC' },
    },
    'no file is moved': { steps: ['open', 'take'], failing: { calls: ['rename'], on: 'lmdb', error: 'EIO' } },
    'the second file is not moved': { steps: ['open', 'take'], failing: { calls: ['rename'], on: 'lmdb/data.mdb', error: 'EIO' } },
  };
  for (const [failure, { failing, steps }] of Object.entries(early))
    for (const step of steps) {
      const { child, told, what } = await faulty(t, failure, step, failing);
      await child.tell(step, 'write 303');
      assert.match(child.failed(), /INJECTED/, what);
      assert.deepEqual([await child.tell('read'), await child.tell('warnings')], [[...told, 303], 1], what);
      child.kill();
      assert.equal(await child.signal(), 'SIGKILL', what);
      await mustStartWith(child.folder, [...told, 303], what);
    }
});

/** A process right before the step in which something fails. */
async function faulty(t: TestContext, moment: string, step: string, failing: Failing) {
  const { from, steps, told } = BEFORE[step] as (typeof BEFORE)[string];
  const child = new Child(t, from, failing);
  await child.tell(...steps);
  child.arm(failing);
  return { child, told: [...told], what: `${moment}, ${step}` };
}
