/** Rules of the house that the compiler doesn't know: who may import what, what decisions may touch, and no forgotten files. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

/** What each folder may import from: itself and what stands below it. `storage` and `cluster` don't know each other. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocols: [],
  // The dashboard uses REST alone.
  web: [],
  vectors: ['protocols'],
  query: ['protocols', 'vectors'],
  storage: ['protocols', 'vectors', 'query'],
  cluster: ['protocols'],
  actors: ['protocols', 'vectors', 'query', 'storage', 'cluster'],
  http: ['protocols', 'vectors', 'query', 'storage', 'cluster', 'actors'],
  ops: ['protocols', 'vectors', 'query', 'storage', 'cluster', 'actors', 'http'],
  test: ['protocols', 'vectors', 'query', 'storage', 'cluster', 'actors', 'http', 'ops', 'web'],
};

/** The one place of each package, or one for each of its uses. A folder ends in `/`. */
const IMPORTERS: Readonly<Record<string, string | readonly string[]>> = {
  nact: 'actors/runtime/',
  rxjs: 'actors/live/streams.ts',
  lmdb: 'storage/disk/lmdb-tables.ts',
  hyparquet: 'ops/transfer/parquet.ts',
  'hyparquet-writer': 'ops/transfer/parquet.ts',
  usearch: 'storage/builder/graph.ts',
  'xxhash-wasm': 'storage/disk/checksum.ts',
  tar: 'storage/archive/members.ts',
  '@aws-sdk/client-s3': 'storage/snapshot-store/s3.ts',
  react: 'web/',
  uplot: 'web/pages/metrics.tsx',
  '@noble/hashes': 'web/model/token.ts',
  'playwright-core': 'test/browser/',
  fastify: 'http/rest/',
  '@fastify/busboy': 'http/rest/transfers/form-file.ts',
  '@fastify/cors': 'http/rest/',
  '@grpc/grpc-js': ['http/grpc/', 'cluster/transport/'],
  '@grpc/reflection': 'http/grpc/',
  protobufjs: 'ops/build-protos.mjs',
  jsonwebtoken: 'http/access/token.ts',
  yaml: 'ops/config/',
  pino: 'ops/log.ts',
  msgpackr: 'protocols/pack.ts',
};

/** Every departure from a rule of this file, with its reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'ops/bench/common/baseline.ts imports usearch': 'the benchmark compares the node with usearch itself',
  'protocols/late-modules.ts uses the process or the console': 'it only puts off the loading of modules that rooms use anyway',
  'protocols/late-modules.ts uses disk, network or threads': 'it only puts off the loading of modules that rooms use anyway',
  'vectors/reference.ts is used by tests only': 'the plain arithmetic that property tests compare the kernels with',
};

/** Programs and threads start here; whatever none of them leads to is dead. Tests are entries for test files only. */
const ENTRIES = [
  'ops/main.ts',
  'ops/begin.ts',
  'ops/troupe.ts',
  'ops/run.mjs',
  'ops/build-kernels.mjs',
  'ops/build-protos.mjs',
  'ops/build-bundle.mjs',
  'ops/build-package.mjs',
  'ops/bench/main.ts',
  'ops/demo/main.ts',
  'ops/cluster/main.ts',
  'web/main.tsx',
  'web/vite.config.mjs',
  'ops/clients/python.ts',
  'ops/docker/health.mjs',
  'ops/docker/warm.mjs',
  'test/process/chaos/main.ts',
  'test/process/faults/main.ts',
  'test/process/hostile/main.ts',
  'test/simulation/main.ts',
  'test/process/release-data/record.ts',
  'test/tables/main.ts',
  'test/browser/measure.ts',
  'test/browser/screenshots.ts',
];

/**
 * The system's date can be set in either direction at any time, so deadlines, pauses and durations go by `steadyNowMs` or
 * `performance.now()`. Who may ask for the date, and what for.
 */
const DATES: Readonly<Record<string, string>> = {
  'storage/threads/clock.ts': 'the clock that is never set begins at the date; the times of entries of a log',
  'actors/runtime/system-ports.ts': 'the date as a port of the actors',
  'ops/compose.ts': 'the date for the servers of the main thread, and for tokens',
  'ops/main.ts': 'lines of the log, and when the process started',
  'ops/troupe.ts': 'lines of the log, and when the folder was opened',
  'http/rest/fast/connection.ts': 'the header `Date`',
  'http/audit/audit-log.ts': 'times of records',
  'http/rest/readers/door.ts': 'when a request was last answered, for telemetry',
  'http/grpc/reader-door.ts': 'when a call was last answered, for telemetry',
  'http/rest/readers/entry.ts': 'tokens say in dates how long they are in force',
  'cluster/transport/open.ts':
    'when a peer was last out of reach, for reports; grpc-js takes a date for a deadline and makes a timer of it at once',
  'cluster/transport/calls.ts': 'grpc-js takes a date for a deadline and makes a timer of it at once',
  'ops/cluster/main.ts': 'lines of a log',
  'ops/tools/audit.ts': 'times that users give as spans',
  'ops/tools/token.ts': 'when a token expires',
  'ops/clients/python.ts': 'a seed',
  'ops/run.mjs': 'a seed',
};

/** Files that only decide: synchronous functions of their arguments. */
function decides(file: string): boolean {
  if (file.startsWith('test/') || file.startsWith('ops/')) return false;
  if (/\/(step|state|plan|moves|reconcile|carry-out|cluster-work|reshape)\.ts$/.test(file)) return true;
  if (/^http\/access\/(claims|credentials|decide)\.ts$/.test(file)) return true;
  if (['vectors/kernels.ts', 'protocols/rest/float-list.ts', 'protocols/grpc/schema.ts'].includes(file)) return false;
  return /^(protocols|query|vectors|storage\/walk|cluster(?!\/transport))\//.test(file);
}

const ACTS: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  { what: 'the clock', pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bhrtime\b/ },
  { what: 'randomness', pattern: /\bMath\.random\b|\brandomUUID\b|\brandomBytes\b|\bgetRandomValues\b/ },
  { what: 'timers', pattern: /\bset(Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/ },
  { what: 'the process or the console', pattern: /\bprocess\.|\bconsole\./ },
  {
    what: 'disk, network or threads',
    pattern: /'node:(fs|fs\/promises|net|http|https|dns|worker_threads|child_process|cluster|timers|os)'/,
  },
];

const SPECIFIER = /(?:\bfrom\s+|\bimport\s*\(?\s*|\brequire\s*\(\s*)['"]([^'"\n]+)['"]/g;
const VALUE_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?['"](\.[^'"\n]+)['"]/gm;
const EXPORTED = /^export (?:abstract |async )?(?:function\*?|class|interface|type|const|let) (\w+)/gm;
const FILE_NAME = /['"`]([\w./-]+\.(?:js|mjs|ts))['"`]/g;

/** A rule is defined by one item of a list, in a README or in the header of a file: `- **Raft-R4** Only disks count: …`. */
const RULE_DEFINED = /^(?: \* )?- \*\*([A-Z][A-Za-z]+-[A-Z]\d{1,2})\*\* /gm;
const RULE_CITED = /(?<![\w-])[A-Z][A-Za-z]+-[A-Z]\d{1,2}(?!\w)/g;
const SHORT_RULE = /(?<![\w%-])[A-Z]\d{1,2}(?![\w%])/g;

/** What looks like the end of a rule's id and is something else, in the files of a folder. */
const NO_RULES: Readonly<Record<string, readonly string[]>> = {
  'vectors/': ['L1', 'L2'],
  'vectors/murmur3.ts': ['C1', 'C2'],
  'ops/': ['S3'],
  'README.md': ['S3'],
  'docs/guide/': ['S3'],
  'CHANGELOG.md': ['S3'],
  'storage/snapshot-store/': ['S3'],
  'test/storage/snapshot-store/': ['S3'],
  'test/ops/config/snapshot-settings.test.ts': ['S3'],
};

const files = [...sourceFiles()];
const sources = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
const edges = new Map(files.map((file) => [file, edgesOf(file)]));
const valueEdges = new Map(files.map((file) => [file, valueEdgesOf(file)]));
const usedExceptions = new Set<string>();

test('imports go one way: protocols ← vectors ← query ← storage ← actors ← http ← ops, and protocols ← cluster ← actors', () => {
  const wrong: string[] = [];
  for (const [file, targets] of edges) {
    const own = top(file);
    for (const target of targets) {
      if (top(target) !== own && !MAY_IMPORT[own]?.includes(top(target))) wrong.push(`${file} imports ${target}`);
    }
  }
  assert.deepEqual(wrong.filter(notExcepted), []);
});

test('the compiled kernels export what their sources do: otherwise run npm run build:kernels', () => {
  for (const [source, compiled] of [
    ['vectors/kernels/index.ts', '../vectors/kernels.wasm'],
    ['protocols/rest/kernels/read.ts', '../protocols/rest/floats.wasm'],
  ] as const) {
    const text = readFileSync(join(ROOT, source), 'utf8');
    const passedOn = [...text.matchAll(/^export \{([^}]+)\}/gm)].flatMap((match) => (match[1] as string).split(','));
    const own = [...text.matchAll(EXPORTED)].map((match) => match[1] as string);
    const module = new WebAssembly.Module(readFileSync(new URL(compiled, import.meta.url)));
    const functions = WebAssembly.Module.exports(module).filter(({ kind }) => kind === 'function');
    assert.deepEqual(functions.map(({ name }) => name).sort(), [...passedOn, ...own].map((name) => name.trim()).sort(), compiled);
  }
});

test('no folders import each other in a ring: what one file needs of another room is never needed back', () => {
  const rooms = new Map<string, Set<string>>();
  for (const [file, targets] of valueEdges) {
    if (file.startsWith('test/')) continue;
    for (const target of targets) {
      if (posix.dirname(target) === posix.dirname(file)) continue;
      rooms.set(posix.dirname(file), (rooms.get(posix.dirname(file)) ?? new Set()).add(posix.dirname(target)));
    }
  }
  const rings = [...rooms.keys()].filter((room) => leadsBack(rooms, room));
  assert.deepEqual(rings, []);
});

test('each rule has one definition, an id of its own in the whole project, and is cited by it alone', () => {
  const texts = new Map([...sources, ...documents()]);
  texts.delete('test/tidy.test.ts');
  const definedAt = new Map<string, string[]>();
  for (const [file, text] of texts) {
    for (const [, id = ''] of text.matchAll(RULE_DEFINED)) definedAt.set(id, [...(definedAt.get(id) ?? []), file]);
  }
  assert.ok(definedAt.size > 100, `${definedAt.size} rules`);
  const wrong: string[] = [];
  for (const [id, places] of definedAt) if (places.length > 1) wrong.push(`${id} is defined in ${places.join(' and in ')}`);
  const numbers = new Set([...definedAt.keys()].map((id) => id.slice(id.indexOf('-') + 1)));
  for (const [file, text] of texts) {
    for (const [id] of text.matchAll(RULE_CITED)) if (!definedAt.has(id)) wrong.push(`${file} cites ${id}, which is defined nowhere`);
    const others = Object.entries(NO_RULES).flatMap(([folder, words]) => (file.startsWith(folder) ? words : []));
    for (const [short] of text.matchAll(SHORT_RULE)) {
      if (numbers.has(short) && !others.includes(short)) wrong.push(`${file} says ${short} without the area`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('every file that a document names by its path is there', () => {
  const wrong: string[] = [];
  for (const [document, text] of documents()) {
    for (const [, path = ''] of text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|mjs))`/g)) {
      const places = [path, posix.join(posix.dirname(document), path)];
      if (!places.some((place) => existsSync(join(ROOT, place)))) wrong.push(`${document} names ${path}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('an exported name means one thing in the whole product', () => {
  const declared = new Map<string, string[]>();
  for (const file of files) {
    // Other programs see these names by the package alone, and want them short.
    if (file === 'ops/troupe-types.ts') continue;
    // Kernels are another language's programs: their names are seen nowhere else.
    if (file.startsWith('test/') || /^(vectors|protocols\/rest)\/kernels\//.test(file)) continue;
    const code = withoutComments(sources.get(file) as string);
    const names = new Set([...code.matchAll(EXPORTED)].map((match) => match[1] as string));
    for (const name of names) declared.set(name, [...(declared.get(name) ?? []), file]);
  }
  const twice = [...declared].filter(([, places]) => places.length > 1).map(([name, places]) => `${name}: ${places.join(', ')}`);
  assert.deepEqual(twice, []);
});

test('each package has one importer', () => {
  const wrong: string[] = [];
  for (const file of files) {
    if (file.startsWith('test/')) continue;
    for (const name of packagesOf(file)) {
      const places = [IMPORTERS[name] ?? []].flat();
      if (places.length === 0) continue;
      if (!places.some((place) => (place.endsWith('/') ? file.startsWith(place) : file === place))) wrong.push(`${file} imports ${name}`);
    }
  }
  assert.deepEqual(wrong.filter(notExcepted), []);
});

test('each package in package.json is imported, and each imported package is there, with tools for tests kept to tests', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
  const shipped = new Set(Object.keys(manifest.dependencies ?? {}));
  const tools = new Set(Object.keys(manifest.devDependencies ?? {}));
  const imported = new Set<string>();
  const wrong: string[] = [];
  for (const file of files) {
    for (const name of packagesOf(file)) {
      // Tests of the package import it by its name.
      if (name === 'troupe' && file.startsWith('test/')) continue;
      imported.add(name);
      const known = shipped.has(name) || (/^(test|web)\/|^ops\/.*\.mjs$/.test(file) && tools.has(name));
      if (!known) wrong.push(`${file} imports ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(
    [...shipped].filter((name) => !imported.has(name)),
    [],
  );
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    assert.match(version, /^\d+\.\d+\.\d+$/, `${name} is not pinned`);
  }
});

test('no file waits at its top level: the bundle could not hold it', () => {
  const shipped = files.filter((file) => file.endsWith('.ts') && !/^(test|ops\/(bench|cluster|demo))\//.test(file));
  // The entry of a thread may begin with an `if`.
  const waiting = shipped.filter((file) => /^await |^if .*\{\n(?: {2}[^\n]*\n)*? {2}await /m.test(sources.get(file) as string));
  assert.deepEqual(waiting, []);
});

test('files that decide use no clock, no randomness, no timers and no IO', () => {
  const wrong: string[] = [];
  for (const file of files.filter(decides)) {
    const code = withoutComments(sources.get(file) as string);
    for (const { what, pattern } of ACTS) if (pattern.test(code)) wrong.push(`${file} uses ${what}`);
  }
  assert.deepEqual(wrong.filter(notExcepted), []);
});

test('nobody asks for the date but to show it', () => {
  const askers = files.filter(
    (file) => !/^(test|ops\/bench|web)\//.test(file) && /\bDate\.now\b|\bnew Date\(\)/.test(withoutComments(sources.get(file) as string)),
  );
  assert.deepEqual(askers.sort(), Object.keys(DATES).sort());
});

test('every source file is reached from a program, and every test helper from a test', () => {
  const alive = reachable(ENTRIES);
  const tests = reachable(files.filter((file) => file.endsWith('.test.ts')));
  const wrong: string[] = [];
  for (const file of files) {
    if (file.endsWith('.d.ts') || alive.has(file)) continue;
    if (!tests.has(file)) wrong.push(`${file} is used by nobody`);
    else if (!file.startsWith('test/')) wrong.push(`${file} is used by tests only`);
  }
  assert.deepEqual(wrong.filter(notExcepted), []);
});

test('every top-level folder has a README', () => {
  const folders = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !['node_modules', 'dist', 'data'].includes(entry.name))
    .map((entry) => entry.name);
  assert.deepEqual(
    folders.filter((folder) => !existsSync(join(ROOT, folder, 'README.md'))),
    [],
  );
});

test('a node that is started in a clone keeps its data in a folder that version control ignores, and no sources are in', () => {
  const { storage } = parse(readFileSync(join(ROOT, 'config/config.yaml'), 'utf8')) as { storage: Record<string, string> };
  const ignored = readFileSync(join(ROOT, '.gitignore'), 'utf8').split('\n');
  for (const key of ['storage_path', 'snapshots_path']) {
    const path = storage[key] as string;
    const folder = posix.normalize(path).split('/')[0] as string;
    assert.ok(!(folder in MAY_IMPORT), `${path} is in a folder of sources`);
    assert.ok(ignored.includes(`/${folder}/`), `${path} is not ignored`);
  }
});

test('no file names a path of somebody’s machine, and the lock file no registry', () => {
  const wrong = [...textFiles()].filter((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    return /(^|[\s'"`(=])\/(home|root|Users|work|mnt)\/\w/m.test(text) || (file === 'package-lock.json' && /"resolved":/.test(text));
  });
  assert.deepEqual(wrong, []);
});

test('nothing in the product decides by the text of an error: its code, its reason and its outcome say what a receiver acts on', () => {
  const decisions = [
    /\b(detail|message)\??\.(includes|endsWith|startsWith|match|indexOf|search)\(/,
    /\.test\((\w+\??\.)*(detail|message)\)/,
    /(?<!typeof )\b(\w+\??\.)*(detail|message) [!=]==? ['"`A-Z]/,
    /['"`A-Z] [!=]==? (\w+\??\.)*(detail|message)\b/,
  ];
  const wrong: string[] = [];
  for (const file of files) {
    if (file.startsWith('test/')) continue;
    const lines = withoutComments(sources.get(file) as string).split('\n');
    lines.forEach((line, at) => {
      if (decisions.some((decision) => decision.test(line))) wrong.push(`${file}:${at + 1} ${line.trim()}`);
    });
  }
  assert.deepEqual(wrong, []);
});

test('no test is left out or runs alone', () => {
  const wrong = files.filter((file) => /\b(test|it|describe)\.(only|todo|skip)\b/.test(withoutComments(sources.get(file) as string)));
  assert.deepEqual(wrong, []);
});

test('every exception is still needed', () => {
  assert.deepEqual(
    Object.keys(EXCEPTIONS).filter((exception) => !usedExceptions.has(exception)),
    [],
  );
});

// ------------------------------------------------------------------ helpers

function notExcepted(finding: string): boolean {
  if (EXCEPTIONS[finding] === undefined) return true;
  usedExceptions.add(finding);
  return false;
}

/** The project's folder, above the built file that runs. */
function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'tsconfig.json'))) return folder;
  const above = dirname(folder);
  if (above === folder) throw new Error('no tsconfig.json above this file');
  return rootAbove(above);
}

/** Sources by their path from the root, with `/` between folders. */
/** Texts in Markdown, by path. */
function documents(): [string, string][] {
  const paths = [...textFiles(), ...(existsSync(join(ROOT, 'docs')) ? below('docs') : [])];
  return paths.filter((path) => path.endsWith('.md')).map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]);
}

function* sourceFiles(): Generator<string> {
  for (const folder of Object.keys(MAY_IMPORT)) {
    for (const file of below(folder)) if (/\.(tsx?|mjs)$/.test(file)) yield file;
  }
}

function* textFiles(): Generator<string> {
  yield* files;
  for (const folder of Object.keys(MAY_IMPORT)) for (const file of below(folder)) if (/\.(md|json|ya?ml)$/.test(file)) yield file;
  for (const entry of readdirSync(ROOT, { withFileTypes: true })) {
    if (entry.isFile() && /\.(md|json|ya?ml)$/.test(entry.name)) yield entry.name;
  }
}

function* below(folder: string): Generator<string> {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* below(path);
    else yield path;
  }
}

function top(file: string): string {
  return file.slice(0, file.indexOf('/'));
}

/** Sources a file leads to: by import, or by naming a file, as workers and child processes are started. */
function edgesOf(file: string): string[] {
  const text = withoutComments(sources.get(file) as string);
  const names = [...text.matchAll(SPECIFIER), ...text.matchAll(FILE_NAME)].map((match) => match[1] as string);
  const targets = new Set<string>();
  for (const name of names) {
    for (const target of candidates(file, name)) if (sources.has(target) && target !== file) targets.add(target);
  }
  return [...targets];
}

/** Sources a file imports something from that is there at run time, so no types. */
function valueEdgesOf(file: string): string[] {
  const text = withoutComments(sources.get(file) as string);
  const names = [...text.matchAll(VALUE_IMPORT)].map((match) => match[1] as string);
  return names.flatMap((name) => candidates(file, name)).filter((target) => sources.has(target) && target !== file);
}

/** Whether a way along the imports of folders that begins in a folder ends there again. */
function leadsBack(rooms: ReadonlyMap<string, ReadonlySet<string>>, start: string): boolean {
  const seen = new Set(rooms.get(start));
  for (const room of seen) for (const next of rooms.get(room) ?? []) seen.add(next);
  return seen.has(start);
}

/** Paths a name may stand for: beside the file, or from the root; `.js` is compiled from `.ts`. */
function candidates(file: string, name: string): string[] {
  const places = [posix.join(posix.dirname(file), name), posix.normalize(name)];
  return places.flatMap((path) => [path, path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx'), `${path}.ts`]);
}

/** Packages a file imports, without Node's own modules. */
function packagesOf(file: string): Set<string> {
  const names = [...withoutComments(sources.get(file) as string).matchAll(SPECIFIER)].map((match) => match[1] as string);
  const packages = names.filter((name) => !name.startsWith('.') && !name.startsWith('node:'));
  return new Set(
    packages.map((name) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/'),
    ),
  );
}

function reachable(from: readonly string[]): Set<string> {
  const found = new Set(from.filter((file) => sources.has(file)));
  for (const file of found) for (const target of edges.get(file) ?? []) found.add(target);
  return found;
}

/** Code without comments; texts in quotes stay. Good enough for looking for words: `//` within a text ends its line. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`\\])\/\/.*$/gm, '$1');
}
