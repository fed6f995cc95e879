/**
 * Calls of the kernel that fail in a node: `failing-calls.c` is loaded before its other libraries, and shares a file with this process, which says
 * what is to fail from now on and counts what is called. A node that runs costs as much with it as without.
 */

import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CALLS, type Call, type Counts, type FaultPlan, KINDS, type Kind } from './kinds.js';

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', '..', 'test', 'process', 'faults', 'failing-calls.c');

/** Why no calls can be made to fail here; false where they can. */
export const noFailingCalls: string | false = whyNot();

function whyNot(): string | false {
  if (process.platform !== 'linux') return 'calls are made to fail by LD_PRELOAD, as Linux has it';
  return spawnSync('cc', ['--version']).status === 0 ? false : 'calls are made to fail by a library in C: install a compiler (`cc`)';
}

/** Compiles the library. Returns its path. Throws with what the compiler said. */
export function compileFailingCalls(folder: string): string {
  const library = join(folder, 'failing-calls.so');
  const { status, stderr } = spawnSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, SOURCE, '-ldl', '-lpthread'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${SOURCE} cannot be compiled:\n${stderr}`);
  return library;
}

/** In a node's folder, where it is started. */
const CONTROL = 'faults.bin';

/** Variables of a node whose calls can be made to fail. library: see `compileFailingCalls`. */
export function variablesFor(library: string): string[] {
  return [`LD_PRELOAD=${library}`, `TROUPE_FAULTS=${CONTROL}`];
}

/** `struct control` of failing-calls.c, little endian as all machines that V8 runs on. */
const PATH_BYTES = 512;
const CALLS_MAX = 32;
const HEAD_BYTES = 32;
const COUNTS_AT = HEAD_BYTES + 2 * PATH_BYTES;
const CONTROL_BYTES = COUNTS_AT + 4 * 4 * CALLS_MAX;

/** What fails in the node of a folder. */
export class FailingCalls {
  readonly #file: number;
  #generation = 0;

  /** nodeFolder: of the node, which is started afterwards. filesIn: files below it count for kinds with `filesOnly`. log: gets a line for each call that failed. */
  constructor(nodeFolder: string, filesIn: string, log: string) {
    this.#file = openSync(join(nodeFolder, CONTROL), 'w+');
    const control = Buffer.alloc(CONTROL_BYTES);
    control.write(filesIn, HEAD_BYTES, PATH_BYTES - 1);
    control.write(log, HEAD_BYTES + PATH_BYTES, PATH_BYTES - 1);
    writeSync(this.#file, control, 0, control.length, 0);
  }

  /** From now on these calls fail; null: they are counted. Each thread counts from here on. */
  arm(plan: FaultPlan | null): void {
    const head = Buffer.alloc(HEAD_BYTES);
    if (plan !== null) {
      for (const call of plan.calls) head.writeUInt32LE(head.readUInt32LE(4) + 2 ** CALLS.indexOf(call), 4);
      head.writeUInt32LE(plan.first, 8);
      head.writeUInt32LE(plan.last, 12);
      head.writeInt32LE(plan.error === 'SIGKILL' ? 0 : constants.errno[plan.error], 16);
      head.writeUInt32LE(plan.filesOnly ? 1 : 0, 20);
    }
    this.disarm();
    writeSync(this.#file, head, 4, HEAD_BYTES - 4, 4);
    this.#generation += 1;
    this.#setGeneration(this.#generation);
  }

  /** From now on nothing fails. */
  disarm(): void {
    this.#setGeneration(0);
  }

  counts(): Counts {
    const bytes = Buffer.alloc(CONTROL_BYTES - COUNTS_AT);
    readSync(this.#file, bytes, 0, bytes.length, COUNTS_AT);
    const at = (list: number, call: Call): number => bytes.readUInt32LE(4 * (list * CALLS_MAX + CALLS.indexOf(call)));
    const of = (kind: Kind, list: number): number[] => kind.calls.map((call) => at(kind.filesOnly ? list + 2 : list, call));
    return {
      all: new Map(KINDS.map((kind) => [kind.name, of(kind, 0).reduce((sum, count) => sum + count, 0)])),
      most: new Map(KINDS.map((kind) => [kind.name, Math.max(...of(kind, 1))])),
    };
  }

  close(): void {
    closeSync(this.#file);
  }

  #setGeneration(generation: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(generation);
    writeSync(this.#file, bytes, 0, 4, 0);
  }
}
