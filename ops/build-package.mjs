/**
 * `npm run package`: makes `dist/package`, the package with what runs and nothing else, and packs it. Compiled files go without comments, spaces
 * and source maps, with short names of what is local to a function; functions and classes keep their names and each statement has its line, for
 * stack traces. Types are those that the `Troupe` class needs, with their comments.
 */

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseAst } from 'rolldown/parseAst';
import { minifySync } from 'rolldown/utils';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const DIST = join(ROOT, 'dist');
const STAGE = join(DIST, 'package');
/** Of all files together, as they lie unpacked. */
const BYTES_MAX = 3_200_000;

const { THREAD_FILES } = await import(pathToFileURL(join(DIST, 'storage', 'threads', 'entries.js')).href);
const ENTRIES = [
  join(DIST, 'ops', 'main.js'),
  join(DIST, 'ops', 'troupe.js'),
  join(DIST, 'http', 'rest', 'readers', 'entry.js'),
  ...Object.values(THREAD_FILES).map((file) => join(DIST, 'storage', 'threads', file)),
];
/** Of a program, and of types. */
const SPECIFIER = /(?:\bfrom\s+|\bimport\s*\(?\s*)['"](\.[^'"\n]+)['"]/g;
/** Files that a program starts or reads by its own place. */
const BESIDE = /new URL\('(\.[^']+)', import\.meta\.url\)/g;

rmSync(STAGE, { recursive: true, force: true });
for (const file of reachable(ENTRIES, (found) => found)) {
  const { code, errors } = minifySync(file, readFileSync(file, 'utf8'), { compress: false, mangle: { toplevel: false, keepNames: true } });
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  write(file, statementPerLine(code));
}
for (const file of reachable([join(DIST, 'ops', 'troupe.d.ts')], (found) => found.replace(/\.js$/, '.d.ts'))) {
  write(file, readFileSync(file, 'utf8').replace(/\n\/\/# sourceMappingURL=.*|^ +/gm, ''));
}
for (const file of ['protocols/grpc/schema.json', 'protocols/grpc/descriptors.bin', 'protocols/rest/floats.wasm', 'vectors/kernels.wasm']) {
  copy(join(DIST, file));
}
for (const file of filesBelow(join(DIST, 'pages'))) copy(file);
for (const file of ['ops/launch.sh', 'README.md', 'CHANGELOG.md', 'LICENSE', 'NOTICE']) copy(join(ROOT, file));
writeFileSync(join(STAGE, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);

const bytes = filesBelow(STAGE).reduce((sum, file) => sum + statSync(file).size, 0);
const packed = spawnSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', process.argv[2] ?? ROOT], {
  cwd: STAGE,
  encoding: 'utf8',
  shell: process.platform === 'win32',
});
if (packed.status !== 0) throw new Error(packed.stderr);
const file = resolve(process.argv[2] ?? ROOT, packed.stdout.trim());
if (bytes > BYTES_MAX) throw new Error(`${file} has ${bytes} bytes unpacked, more than ${BYTES_MAX}`);
console.log(`${file} (${statSync(file).size} bytes; ${bytes} unpacked)`);

/** What those who install it need to know; nothing about building and testing. */
function manifest() {
  const { dependencies, description, engines, exports, bin, license, name, optionalDependencies, type, version } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  );
  return { name, version, description, license, type, engines, exports, bin, dependencies, optionalDependencies };
}

/** The files and all that they load, as `shown` names it. */
function reachable(entries, shown) {
  const found = new Set();
  const todo = [...entries];
  for (let file = todo.pop(); file !== undefined; file = todo.pop()) {
    if (found.has(file) || !existsSync(file)) continue;
    found.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, path] of [...text.matchAll(SPECIFIER), ...text.matchAll(BESIDE)]) {
      if (/\.(js|ts)$/.test(path)) todo.push(shown(resolve(dirname(file), path)));
    }
  }
  return [...found].sort();
}

/** A line for each statement of a block and each member of a class. */
function statementPerLine(code) {
  const starts = new Set();
  const look = (node) => {
    if (Array.isArray(node)) return node.forEach(look);
    if (node === null || typeof node !== 'object') return;
    if (Array.isArray(node.body)) for (const { start } of node.body) starts.add(start);
    Object.values(node).forEach(look);
  };
  look(parseAst(code));
  const at = [0, ...[...starts].sort((a, b) => a - b), code.length];
  return at
    .slice(1)
    .map((end, index) => code.slice(at[index], end))
    .filter((line) => line !== '')
    .join('\n');
}

function write(file, text) {
  const place = join(STAGE, relative(ROOT, file));
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, text);
}

function copy(file) {
  const place = join(STAGE, relative(ROOT, file));
  mkdirSync(dirname(place), { recursive: true });
  copyFileSync(file, place);
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((file) => !file.endsWith('.map') && !file.includes(`${sep}.cache${sep}`));
}
