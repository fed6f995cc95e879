/**
 * Runs every code block of the README as it stands there, in a fresh clone: the tracked files alone, whose packages npm installs. Only the
 * ports are others, so that a node of this machine is not disturbed.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../ops/ports.js';
import { answers, blocksOf, checkCurl, type Place, run } from './documents.js';
import { checkAnswer, guideBlocksOf } from './guide-blocks.js';
import { temporaryFolder, until } from './support.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NOT_CLONED: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist', 'data']);
/** One line for each answer, and an error status ends the block. */
const CURL_SETTINGS = 'silent\nshow-error\nfail\nwrite-out = "\\n"\n';
const READY_MS = 60_000;

test('the README does what it says, block by block, in a fresh clone', async (t) => {
  await checkCurl();
  const base = await temporaryFolder(t);
  const troupe = await freshClone(join(base, 'troupe'));
  const program = await emptyFolder(join(base, 'program'));
  await writeFile(join(base, '.curlrc'), CURL_SETTINGS);
  const npm = {
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
  };
  const [http, grpc] = (await freePorts(2)) as [number, number];
  const ports = { SERVICE__SERVICE__HTTP_PORT: String(http), SERVICE__SERVICE__GRPC_PORT: String(grpc) };
  const inClone: Place = { folder: troupe, environment: { ...npm, ...ports, CURL_HOME: base } };
  const inProgram: Place = { folder: program, environment: npm };

  const [start, everything, search, texts, install, code, cluster, ask, save, configure, ...others] = blocksOf(
    await readFile(join(troupe, 'README.md'), 'utf8'),
  );
  assert.deepEqual(others, [], 'a block that this test does not run');
  assert.equal(everything, 'npm test\n', 'what runs this test, too');

  const [pack, add] = (install as string).split('\n');
  await t.test('npm run package, which builds', async () => {
    await run(pack as string, inClone);
  });

  await t.test('npm start, a first search, a search for texts, and snapshots', async (context) => {
    await serve(context, start as string, http, inClone);
    const cities = answers(await run((search as string).replaceAll(':6333', `:${http}`), inClone));
    assert.deepEqual(idsIn(cities.at(-1)), [1, 2]);
    const notes = answers(await run((texts as string).replaceAll(':6333', `:${http}`), inClone));
    assert.deepEqual(idsIn(notes.at(-1)), [1]);
    const saved = answers(await run((save as string).replaceAll(':6333', `:${http}`), inClone));
    assert.deepEqual((saved.at(-1) as { result: unknown }).result, { count: 2 });
    assert.ok(existsSync(join(troupe, 'data')), 'the data is in ./data');
  });

  await t.test('undo the mistake of ten minutes ago, as ops/README.md says', async (context) => {
    const settings = { ...inClone.environment, SERVICE__STORAGE__POINT_IN_TIME_RESTORE: 'true' };
    await serve(context, start as string, http, { ...inClone, environment: settings });
    const ask = async (code: string) => answers(await run(code.replaceAll(':6333', `:${http}`), inClone)).at(-1) as { result: unknown };
    const cities = 'localhost:6333/collections/cities';
    const upsert = (id: number) => ask(`curl -X PUT '${cities}/points?wait=true' -d '{"points": [{"id": ${id}, "vector": [1, 2, 3, 4]}]}'`);
    await upsert(3);
    await ask(`curl -X POST ${cities}/snapshots`);
    await upsert(4);
    const moment = new Date(Date.now() + 1).toISOString();
    await until(
      async () => new Date().toISOString(),
      (now) => now > moment,
    );
    await ask(`curl -X POST '${cities}/points/delete?wait=true' -d '{"filter": {}}'`);
    assert.deepEqual((await ask(`curl -X POST ${cities}/points/count -d '{}'`)).result, { count: 0 });
    const undo = blocksOf(await readFile(join(troupe, 'ops/README.md'), 'utf8'), false).find((block) =>
      block.includes('"until"'),
    ) as string;
    const done = (await ask(undo.replace(/^UNTIL=.*$/m, `UNTIL=${moment}`))).result as { shards: { operations: number }[] };
    assert.ok(done.shards.some(({ operations }) => operations === 1));
    assert.deepEqual((await ask(`curl -X POST ${cities}/points/count -d '{}'`)).result, { count: 4 });
  });

  await t.test('within a program', async () => {
    await run(add as string, inProgram);
    await writeFile(join(program, 'search.mjs'), code as string);
    assert.equal(await run('node search.mjs', inProgram), 'Berlin\n');
    assert.equal(await run('node search.mjs', inProgram), 'Berlin\n', 'a second time, with the data there');
  });

  await t.test('a cluster', async (context) => {
    const script = begin(context, cluster as string, inClone);
    const printed = await script.says(/All nodes are ready[\s\S]*Commands/);
    const addresses = Object.fromEntries([...printed.matchAll(/export (NODE_\d)=(\S+)/g)].map(([, name, url]) => [name, url]));
    const found = answers(await run(ask as string, { ...inClone, environment: { ...inClone.environment, ...addresses } }));
    assert.deepEqual((found[2] as { result: unknown }).result, { count: 1 });
    assert.equal(Object.keys((found[4] as { result: { peers: object } }).result.peers).length, 3);
    const guide = guideBlocksOf(await readFile(join(troupe, 'docs/guide/cluster.md'), 'utf8'));
    for (const block of guide)
      checkAnswer(block, await run(block.code, { ...inClone, environment: { ...inClone.environment, ...addresses } }));
    script.child.stdin?.end('quit\n');
    await script.closed;
  });

  await t.test('settings in variables', async (context) => {
    const [other] = (await freePorts(1)) as [number];
    await serve(context, (configure as string).replace('7333', String(other)), other, inClone);
    assert.ok(existsSync(join(troupe, 'elsewhere')));
  });
});

/** The tracked files as they are here, without packages: the first command of the README installs them. */
async function freshClone(folder: string): Promise<string> {
  await cp(ROOT, folder, { recursive: true, filter: (path) => !NOT_CLONED.has(basename(path)) });
  return folder;
}

async function emptyFolder(folder: string): Promise<string> {
  await mkdir(folder);
  return folder;
}

interface Running {
  readonly child: ChildProcess;
  readonly closed: Promise<unknown>;
  /** What it has printed when that matches. */
  says(what: RegExp): Promise<string>;
}

/** A block that goes on until the end of the test. */
function begin(context: TestContext, code: string, { environment, folder }: Place): Running {
  // In a group of its own: npm hands no signal on to what it has started.
  const child = spawn('sh', ['-c', code], {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const closed = once(child, 'close');
  let printed = '';
  child.stdout.on('data', (bytes: Buffer) => {
    printed += bytes.toString();
  });
  context.after(async () => {
    try {
      process.kill(-(child.pid as number), 'SIGTERM');
    } catch {
      // It has ended.
    }
    await closed;
  });
  const says = (what: RegExp): Promise<string> =>
    until(
      () => Promise.resolve(printed),
      (text) => what.test(text),
      READY_MS,
    );
  return { child, closed, says };
}

/** Runs a block that starts a node, until the end of the test. Resolves when the node is ready. */
async function serve(context: TestContext, code: string, port: number, place: Place): Promise<void> {
  begin(context, code, place);
  const isReady = async (): Promise<boolean> => {
    const response = await fetch(`http://localhost:${port}/readyz`).catch(() => null);
    return response?.status === 200;
  };
  await until(isReady, (ready) => ready, READY_MS);
}

function idsIn(answer: unknown): unknown[] {
  return (answer as { result: { points: { id: unknown }[] } }).result.points.map(({ id }) => id);
}
