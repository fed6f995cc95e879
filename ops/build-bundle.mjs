/**
 * Makes `dist/bundle`: the server and each of its threads as few files, so that a start reads and compiles them at once.
 * CommonJS loads without a pause between files, and does not load all that Node's own modules export (`node:http` has fetch).
 *
 * The bundle lies beside the compiled files and takes from them what is no code: files that a module finds by
 * `import.meta.url` (kernels, schemas) are found where that module was compiled to.
 */

import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const DIST = join(ROOT, 'dist');
const FOLDER = join(DIST, 'bundle');
/** Loaded before all else by each file that a thread starts with. */
const STACK_TRACES = 'stack-traces.cjs';

const { THREAD_FILES } = await import(pathToFileURL(join(DIST, 'storage', 'threads', 'entries.js')).href);
const THREADS = Object.entries(THREAD_FILES).map(([name, file]) => [name, join(DIST, 'storage', 'threads', file)]);

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
copyFileSync(join(ROOT, 'ops', STACK_TRACES), join(FOLDER, STACK_TRACES));

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
    banner: ({ isEntry }) => (isEntry ? `require('./${STACK_TRACES}');` : ''),
    entryFileNames: '[name].cjs',
    chunkFileNames: `${name}-[hash].cjs`,
    // Comments and spaces out: a thread keeps the text of its program. Names stay, for stack traces.
    minify: { compress: false, mangle: false, codegen: true },
  });
  await bundle.close();
}
