/**
 * Compiles the kernels, which are AssemblyScript, in the given folder; default: dist.
 *
 * - `vectors/kernels.wasm`: searches. Its memory is imported and shared, and it has no data segments: an instance can be
 *   made on a memory that other threads are already using.
 * - `protocols/rest/floats.wasm`: reads numbers, in a memory of its own.
 */

import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const outDir = resolve(process.argv[2] ?? join(root, 'dist'));
const DATA_SECTION = 11;

await compile('vectors/kernels/index.ts', 'vectors/kernels.wasm', [
  ...['--enable', 'simd', '--enable', 'threads', '--enable', 'bulk-memory'],
  ...['--importMemory', '--sharedMemory', '--noExportMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
]);
await compile('protocols/rest/kernels/read.ts', 'protocols/rest/floats.wasm', [
  ...['--enable', 'simd', '--initialMemory', '2', '--maximumMemory', '2'],
]);

async function compile(source, target, options) {
  const outFile = join(outDir, target);
  mkdirSync(dirname(outFile), { recursive: true });
  const { error, stderr } = await asc.main([
    join(root, source),
    ...['--outFile', outFile],
    ...['-O3', '--noAssert', '--runtime', 'stub', '--use', 'abort='],
    ...options,
  ]);
  if (error) {
    console.error(stderr.toString());
    process.exit(1);
  }
  if (sectionIds(readFileSync(outFile)).includes(DATA_SECTION)) throw new Error(`${target} has data segments`);
}

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
