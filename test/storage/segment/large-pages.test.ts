import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { FilePart } from '../../../storage/memory/system-calls.js';
import { wantLargePages } from '../../../storage/segment/large-pages.js';
import type { SegmentLayout } from '../../../storage/segment/layout.js';
import { broughtNode } from '../../brought-node.js';

const MB = 1 << 20;
const KB64 = 65_536;
const memory = { buffer: new SharedArrayBuffer(0) } as unknown as WebAssembly.Memory;

function wantedOf(capacity: number, vector: object): readonly Omit<FilePart, 'buffer'>[] {
  const wanted: Omit<FilePart, 'buffer'>[] = [];
  const layout = { capacity, vectors: [{ codes: null, graph: null, ragged: null, ...vector }] } as unknown as SegmentLayout;
  wantLargePages(memory, layout, ({ bytes, offset }) => wanted.push({ offset, bytes }));
  return wanted;
}

test('large pages are wanted for many codes and many links, and for nothing beside them', () => {
  const codes = { offset: 64, stride: 1024 };
  const graph = { level0: 1024 * MB + 64, m0: 255 };
  assert.deepEqual(wantedOf(16 * 1024, { codes, graph }), [
    { offset: KB64, bytes: 16 * MB - KB64 },
    { offset: 1024 * MB + KB64, bytes: 16 * MB - KB64 },
  ]);
  assert.deepEqual(wantedOf(8 * 1024 - 1, { codes, graph }), []);
  assert.deepEqual(
    wantedOf(1, { codes, ragged: { itemCapacity: 16 * 1024 } }),
    [{ offset: KB64, bytes: 16 * MB - KB64 }],
    'codes of token vectors',
  );
});

/** Prints the flags of the part of a memory for which large pages are wanted. */
const PROGRAM = `
import { readFileSync } from 'node:fs';
const { largePages } = await import(process.argv[1]);
const { buffer } = new WebAssembly.Memory({ initial: 512, maximum: 512, shared: true });
new Uint8Array(buffer).fill(1);
largePages()({ buffer, offset: 65536 * 16, bytes: 65536 * 96 });
const entries = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-)/m);
console.log(entries.filter((entry) => /^VmFlags:.* hg/m.test(entry)).map((entry) => Number(/^Size:\\s+(\\d+)/m.exec(entry)[1])).join());
`;

test('the system is asked for large pages for just that part of a memory', async (t) => {
  const runtime = broughtNode();
  const isPossible = process.platform === 'linux' && existsSync('/sys/kernel/mm/transparent_hugepage');
  if (runtime === null || !isPossible) return t.skip('needs the runtime that Troupe brings along, on Linux with large pages');
  const calls = new URL('../../../storage/memory/system-calls.js', import.meta.url).href;
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', PROGRAM, calls];
  const { stdout } = await promisify(execFile)(runtime, words, { env: { ...process.env, TROUPE_STARTED: 'brought' } });
  assert.equal(stdout.trim(), String((65536 * 96) / 1024));
});
