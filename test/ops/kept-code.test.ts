import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'ops', 'kept-code.cjs');

/** A bundle of one program with a part, which keeps its code at once, as it ends. */
class SmallBundle {
  readonly folder = mkdtempSync(join(tmpdir(), 'troupe-code-'));

  constructor(context: TestContext) {
    context.after(() => rmSync(this.folder, { recursive: true, force: true }));
    copyFileSync(SOURCE, join(this.folder, 'kept-code.cjs'));
    writeFileSync(join(this.folder, 'part.cjs'), 'exports.double = (value) => value * 2;');
    this.write("console.log(require('./part.cjs').double(21));");
  }

  write(text: string): void {
    writeFileSync(join(this.folder, 'small-program.cjs'), text);
  }

  /** What the program prints. readyAfterMs: null: it ends before it is ready. */
  run(build: string, readyAfterMs: number | null = 0): string {
    const load = `require('./kept-code.cjs')('small', '${build}', 1); setTimeout(() => {}, 50);`;
    const tell = `setTimeout(() => { require('node:worker_threads').getEnvironmentData('troupe-ready')[0] = 1; }, ${readyAfterMs});`;
    writeFileSync(join(this.folder, 'small.cjs'), readyAfterMs === null ? load : load + tell);
    const environment = { ...process.env, NODE_COMPILE_CACHE: join(this.folder, 'cache') };
    const { stderr, stdout } = spawnSync(process.execPath, [join(this.folder, 'small.cjs')], { encoding: 'utf8', env: environment });
    return stdout + stderr;
  }

  /** The kept files, as paths. */
  kept(): string[] {
    const folder = join(this.folder, 'cache');
    if (!existsSync(folder)) return [];
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.code'))
      .map((name) => join(folder, name));
  }
}

test('a program of the bundle keeps the code of its parts, and runs the same with it; another build has a file of its own', (context) => {
  const bundle = new SmallBundle(context);
  assert.equal(bundle.run('one'), '42\n');
  const [path = ''] = bundle.kept();
  const kept = readFileSync(path);
  assert.equal(bundle.run('one'), '42\n');
  assert.deepEqual(readFileSync(path), kept, 'nothing was compiled anew');
  bundle.write("console.log(require('./part.cjs').double(12));");
  assert.equal(bundle.run('two'), '24\n');
  assert.equal(bundle.kept().length, 2);
});

test('a program keeps no code before it is ready: what it would have compiled later would be missing for good', (context) => {
  const bundle = new SmallBundle(context);
  bundle.write("console.log('on its way')");
  assert.equal(bundle.run('one', null), 'on its way\n');
  assert.deepEqual(bundle.kept(), []);
  bundle.run('one', 20);
  assert.equal(bundle.kept().length, 1);
});

test('kept code that is damaged is not run: V8 would take it, and end the process', (context) => {
  const bundle = new SmallBundle(context);
  bundle.run('one');
  const [path = ''] = bundle.kept();
  const whole = readFileSync(path);
  for (const at of [0, 40, whole.length >> 2, whole.length - 100]) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] as number) ^ 0x5a;
    writeFileSync(path, damaged);
    assert.equal(bundle.run('one'), '42\n', `byte ${at}`);
    assert.equal(readFileSync(path).length, whole.length, 'it is kept anew');
  }
  for (const length of [0, 7, whole.length / 2, whole.length - 8]) {
    truncateSync(path, length);
    assert.equal(bundle.run('one'), '42\n', `${length} bytes`);
    writeFileSync(path, whole);
  }
});
