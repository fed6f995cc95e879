/**
 * Compiles the search kernels (AssemblyScript) to `kernels.wasm` in the given folder; default: dist/vectors.
 *
 * The memory is imported and shared, and the module has no data segments: an instance can be made on a memory that
 * other threads are already using.
 */

import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const outDir = resolve(process.argv[2] ?? join(root, 'dist/vectors'));
const outFile = join(outDir, 'kernels.wasm');
const DATA_SECTION = 11;

mkdirSync(outDir, { recursive: true });
const { error, stderr } = await asc.main([
  join(root, 'vectors/kernels/index.ts'),
  ...['--outFile', outFile],
  ...['-O3', '--noAssert', '--runtime', 'stub'],
  ...['--enable', 'simd', '--enable', 'threads', '--enable', 'bulk-memory'],
  ...['--importMemory', '--sharedMemory', '--noExportMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
  ...['--use', 'abort='],
]);
if (error) {
  console.error(stderr.toString());
  process.exit(1);
}

if (sectionIds(readFileSync(outFile)).includes(DATA_SECTION)) throw new Error('the compiled kernels have data segments');

/** Ids of the module's sections, in order. Source: WebAssembly core specification, binary format of modules. */
function sectionIds(module) {
  const ids = [];
  for (let at = 8; at < module.length; ) {
    ids.push(module[at++]);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = module[at++];
      size |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    at += size;
  }
  return ids;
}
