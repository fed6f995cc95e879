/**
 * Makes `dist/bundle`: the server and each of its threads as few files, so that a start reads and compiles them at once.
 * CommonJS loads without a pause between files, and does not load all that Node's own modules export (`node:http` has fetch).
 *
 * The bundle lies beside the compiled files and takes from them what is no code: files that a module finds by
 * `import.meta.url` (kernels, schemas) are found where that module was compiled to.
 */

import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const DIST = join(ROOT, 'dist');
const FOLDER = join(DIST, 'bundle');
/** Loaded before all else by each file that a thread starts with. */
const STACK_TRACES = 'stack-traces.cjs';
/** Loads the program of a thread. */
const KEPT_CODE = 'kept-code.cjs';
/**
 * What a thread runs first, in a file of its own. `launch.sh` and the pool have heaps made with an option of V8 (`storage/pool/late-marking.ts`). V8
 * takes no compiled code that was kept under other options, not even that of Node.js's own modules, so the option is taken back before
 * the program is loaded. Heaps that are made from here on, those of all threads but the main one, have no collections of V8's own at rest (`RestingHeap` in
 * `storage/threads/collect-garbage.ts`).
 */
const FIRST = (name, build) =>
  `for (const option of ['--initial-old-space-size=0', '--no-memory-reducer']) require('node:v8').setFlagsFromString(option);\nrequire('./${STACK_TRACES}');\nrequire('./${KEPT_CODE}')('${name}', '${build}');\n`;
/** A process of its own, whose heap is made without that option. */
const ALONE = 'checker';

const { THREAD_FILES } = await import(pathToFileURL(join(DIST, 'storage', 'threads', 'entries.js')).href);
const THREADS = Object.entries(THREAD_FILES).map(([name, file]) => [name, join(DIST, 'storage', 'threads', file)]);

/** UTF-16 units, and what they are escaped to (`\u2026`). */
const BEYOND_ASCII = /[^\0-\x7f]/g;
const ESCAPE_LENGTH = 6;
/** Of the numbers of a source map. */
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Packages with compiled parts, and one that reads files of its own: they stay where npm has put them. */
const OUTSIDE = ['lmdb', 'msgpackr', 'usearch', '@grpc/reflection'];

/** `import.meta.url` goes on to mean the compiled file, not the bundle's. */
const ownPlaces = {
  name: 'own-places',
  transform(code, id) {
    if (!id.startsWith(DIST + sep) || !code.includes('import.meta.url')) return null;
    const place = relative(FOLDER, id).split(sep).join('/');
    return { code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(place)}, import.meta.url).href`), map: null };
  },
};

/**
 * nact needs little of two modules that take long to load: `assert(condition)`, and some digits that make the name of a system of actors
 * unlike the others of its process.
 */
const SMALL_MODULES = {
  assert: "((holds) => { if (!holds) throw new Error('an invariant of nact broke'); })",
  crypto: '{ randomBytes: () => Buffer.from(Uint32Array.of(Math.random() * 2 ** 32).buffer) }',
};
const smallModules = {
  name: 'small-modules',
  transform(code, id) {
    if (!id.startsWith(join(ROOT, 'node_modules', 'nact') + sep)) return null;
    const small = Object.entries(SMALL_MODULES).reduce(
      (text, [name, module]) => text.replace(new RegExp(`require\\('${name}'\\)`), () => module),
      code,
    );
    return { code: small, map: null };
  },
};

// Compiled code is kept by the names of files (`launch.sh`), and these names change.
for (const folder of [FOLDER, join(DIST, '.cache')]) rmSync(folder, { recursive: true, force: true });
const ENTRIES = [['main', join(DIST, 'ops', 'begin.js')], ['doors', join(DIST, 'http/rest/readers/entry.js')], ...THREADS];
for (const [name, file] of ENTRIES) await bundleEntry(name, file);
for (const name of programs()) escapeText(join(FOLDER, name));
const build = programs()
  .reduce((hash, name) => hash.update(`${name}\n`).update(readFileSync(join(FOLDER, name))), createHash('sha256'))
  .digest('hex');
for (const name of [STACK_TRACES, KEPT_CODE]) copyFileSync(join(ROOT, 'ops', name), join(FOLDER, name));
for (const [name] of ENTRIES) if (name !== ALONE) writeFileSync(join(FOLDER, `${name}.cjs`), FIRST(name, build.slice(0, 16)));

function programs() {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.cjs'))
    .sort();
}

/** One file with all that it needs at once (to find, read and check many takes longer), and one more for each part that is loaded later. */
async function bundleEntry(name, file) {
  const bundle = await rolldown({
    cwd: ROOT,
    platform: 'node',
    input: { [name]: file },
    external: OUTSIDE,
    transform: { define: { TROUPE_BUNDLE: 'true' } },
    plugins: [ownPlaces, smallModules],
    // A package that one part loads late and another at once is loaded at once.
    onLog: (level, log, pass) => (log.code === 'INEFFECTIVE_DYNAMIC_IMPORT' ? undefined : pass(level, log)),
  });
  await bundle.write({
    dir: FOLDER,
    format: 'cjs',
    sourcemap: true,
    // `launch.sh` starts the bundle without `--enable-source-maps`.
    banner: ({ isEntry }) => (isEntry && name === ALONE ? `require('./${STACK_TRACES}');` : ''),
    entryFileNames: name === ALONE ? '[name].cjs' : '[name]-program.cjs',
    chunkFileNames: `${name}-[hash].cjs`,
    // Comments and spaces out: a thread keeps the text of its program. Names stay, for stack traces.
    minify: { compress: false, mangle: false, codegen: true },
  });
  await bundle.close();
}

/**
 * Writes a program's characters beyond ASCII as escapes: V8 keeps a text with one of them, which each thread does, at two bytes a character.
 * Columns of the source map move along.
 */
function escapeText(file) {
  const mapFile = `${file}.map`;
  const map = existsSync(mapFile) ? JSON.parse(readFileSync(mapFile, 'utf8')) : { mappings: '' };
  const mappings = map.mappings.split(';');
  const lines = readFileSync(file, 'utf8').split('\n');
  for (const [at, line] of lines.entries()) {
    const columns = [...line.matchAll(BEYOND_ASCII)].map(({ index }) => index);
    if (columns.length === 0) continue;
    if (columns.some((column) => line[column - 1] === '\\')) throw new Error(`${file}: cannot escape what follows a backslash`);
    lines[at] = line.replace(BEYOND_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    if (mappings[at]) mappings[at] = moveColumns(mappings[at], columns);
  }
  writeFileSync(file, lines.join('\n'));
  if (existsSync(mapFile)) writeFileSync(mapFile, JSON.stringify({ ...map, mappings: mappings.join(';') }));
}

/** The segments of one line whose characters at these columns have each become an escape. A segment begins with how far it is from the last. */
function moveColumns(segments, columns) {
  let column = 0;
  let escaped = 0;
  let moved = 0;
  const next = segments.split(',').map((segment) => {
    const [distance, length] = readNumber(segment);
    column += distance;
    while (escaped < columns.length && columns[escaped] < column) escaped++;
    const before = moved;
    moved = column + escaped * (ESCAPE_LENGTH - 1);
    return printNumber(moved - before) + segment.slice(length);
  });
  return next.join(',');
}

/** The number at the start of a segment, 5 bits a digit, the lowest of all its sign; and how many digits it has. */
function readNumber(segment) {
  let bits = 0;
  for (let at = 0; ; at++) {
    const digit = DIGITS.indexOf(segment[at]);
    bits |= (digit & 31) << (5 * at);
    if (digit < 32) return [bits & 1 ? -(bits >> 1) : bits >> 1, at + 1];
  }
}

function printNumber(value) {
  let text = '';
  let bits = value < 0 ? (-value << 1) | 1 : value << 1;
  for (; bits > 31; bits >>= 5) text += DIGITS[(bits & 31) | 32];
  return text + DIGITS[bits];
}
