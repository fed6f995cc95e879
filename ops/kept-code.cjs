/**
 * Loads a program of the bundle with the code that V8 compiled in an earlier start. Node.js keeps such code too (`NODE_COMPILE_CACHE`), but as it is before the
 * program has run: without the functions that V8 compiles when they are first called, which are most of what a start needs. So this keeps what a
 * thread has compiled two seconds after its start, or after the node is ready where that takes longer: one file for each kind of thread, in that
 * folder. What is kept too early would lack functions, and be read by each later start.
 *
 * A kept file counts for one build of the bundle, one version of Node.js and the same options of V8. V8 runs code whose bytes have changed, and may end the
 * process by it, so all is in the file twice: to compare takes a tenth of a millisecond, and what computes checksums would have to be loaded.
 */

const { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } = require('node:fs');
const Module = require('node:module');
const { basename, dirname, join } = require('node:path');
const v8 = require('node:v8');
const { Script } = require('node:vm');
const { getEnvironmentData, isMainThread, setEnvironmentData, threadId } = require('node:worker_threads');

const KEEP_AFTER_MS = 2000;
/** Threads find by this name what the main thread sets to 1 when the node is ready: Int32Array [1] in shared memory. */
const READY = 'troupe-ready';
const HEAD = '(function (exports, require, module, __filename, __dirname) {';
const TAIL = '\n})';
/** First in each half of a file: how long the list of its parts is. */
const LENGTH_BYTES = 8;
/** Where each part begins, for V8. */
const ALIGNMENT = 8;

/** name: of the kind of thread. build: of the bundle. keepAfterMs: when code is kept that was not kept before, or looked again whether it can be. */
module.exports = function load(name, build, keepAfterMs = KEEP_AFTER_MS) {
  const folder = process.env.NODE_COMPILE_CACHE;
  if (folder) keepCode(join(folder, `bundle-${build}-${process.version}-${process.arch}-${v8.cachedDataVersionTag()}`), name, keepAfterMs);
  require(`./${name}-program.cjs`);
};

function keepCode(folder, name, keepAfterMs) {
  const kept = readKept(join(folder, `${name}.code`));
  const loaded = new Map();
  let isComplete = true;
  if (isMainThread) setEnvironmentData(READY, new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)));
  const ready = getEnvironmentData(READY);
  Module._extensions['.cjs'] = (module, file) => {
    if (dirname(file) !== __dirname) return Module._extensions['.js'](module, file);
    const part = basename(file);
    const script = new Script(HEAD + readFileSync(file, 'latin1') + TAIL, {
      filename: file,
      columnOffset: -HEAD.length,
      cachedData: kept.get(part),
    });
    loaded.set(part, script);
    if (script.cachedDataRejected !== false) isComplete = false;
    const run = script.runInThisContext();
    run.call(module.exports, module.exports, Module.createRequire(file), module, file, __dirname);
  };
  let wasReady = null;
  const timer = setInterval(() => {
    const isReady = Atomics.load(ready, 0) === 1;
    // What a slow node runs when it has just become ready counts, too.
    const isEarly = !isReady || wasReady === false;
    wasReady = isReady;
    if (isEarly) return;
    clearInterval(timer);
    // Node.js keeps the code of what is loaded later.
    delete Module._extensions['.cjs'];
    if (isComplete) return;
    try {
      writeKept(folder, name, new Map([...kept, ...[...loaded].map(([part, script]) => [part, script.createCachedData()])]));
    } catch {
      // A folder that cannot be written costs nothing: each start compiles.
    }
  }, keepAfterMs);
  timer.unref();
}

/** The code of each part by its name; none where the file is not as it was written. */
function readKept(path) {
  try {
    const file = readFileSync(path);
    const half = file.subarray(0, file.length / 2);
    if (!half.equals(file.subarray(file.length / 2))) return new Map();
    const end = LENGTH_BYTES + Number(half.readBigUInt64LE(0));
    let at = aligned(end);
    return new Map(
      JSON.parse(half.toString('latin1', LENGTH_BYTES, end)).map(([part, bytes]) => {
        const code = half.subarray(at, at + bytes);
        at += aligned(bytes);
        return [part, code];
      }),
    );
  } catch {
    return new Map();
  }
}

/** What is not on the disk as a whole never has its name. */
function writeKept(folder, name, codes) {
  const unfinished = join(folder, `${name}.${process.pid}.${threadId}.tmp`);
  const list = Buffer.from(JSON.stringify([...codes].map(([part, code]) => [part, code.length])), 'latin1');
  const bytes = [...codes.values()].reduce((sum, code) => sum + aligned(code.length), aligned(LENGTH_BYTES + list.length));
  const half = Buffer.alloc(bytes);
  half.writeBigUInt64LE(BigInt(list.length), 0);
  list.copy(half, LENGTH_BYTES);
  let at = aligned(LENGTH_BYTES + list.length);
  for (const code of codes.values()) {
    code.copy(half, at);
    at += aligned(code.length);
  }
  const file = Buffer.concat([half, half]);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const descriptor = openSync(unfinished, 'w', 0o600);
    try {
      for (let written = 0; written < file.length; ) written += writeSync(descriptor, file, written);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(unfinished, join(folder, `${name}.code`));
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

function aligned(bytes) {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}
