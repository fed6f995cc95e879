/**
 * Stack traces of the bundle name the compiled files. Each file of `dist/bundle` that a thread starts with loads this one first (see
 * `build-bundle.mjs`). Source maps are read with the first stack trace that somebody looks at: Node.js with `--enable-source-maps` reads them
 * at each start, which costs every thread some 20 ms of CPU.
 */

const { readFileSync } = require('node:fs');
const { SourceMap } = require('node:module');
const { dirname, resolve } = require('node:path');

/** The map of each file that was in a stack trace; null: it has none. */
const maps = new Map();

Error.prepareStackTrace = (error, frames) => [headOf(error), ...frames.map((frame) => `    at ${mapped(frame)}`)].join('\n');

function headOf(error) {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return 'Error';
  }
}

/** The frame as V8 writes it, with the place in the source. */
function mapped(frame) {
  const text = String(frame);
  const file = frame.getFileName();
  const line = frame.getLineNumber();
  const column = frame.getColumnNumber();
  if (!file?.startsWith(__dirname) || line === null || column === null) return text;
  const entry = mapOf(file)?.findEntry(line - 1, column - 1);
  if (entry?.originalSource === undefined) return text;
  const place = `${resolve(dirname(file), entry.originalSource)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  return text.replace(`${file}:${line}:${column}`, () => place);
}

function mapOf(file) {
  let map = maps.get(file);
  if (map === undefined) {
    try {
      map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
    } catch {
      map = null;
    }
    maps.set(file, map);
  }
  return map;
}
