/**
 * What this machine gives the process: addresses, file descriptors, mappings. Limits are read where they are, as they can change while the
 * process runs. Null: not known, since the system has no /proc (then nothing is refused for the lack of it).
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { readSystemFile } from '../memory/system-file.js';

/** User space of a process with 47 bits of addresses, as on x86-64; what /proc/self/maps shows counts where it is there. */
const USER_BITS = 47;
/** Addresses that stay free, for stacks and heaps of threads: what fails there ends the process. */
const SPARE_ADDRESS_BYTES = 2 ** 30;
/** An open LMDB environment has three; it opens two more for a moment. Other threads may open some at the same time. */
const SPARE_DESCRIPTORS = 16;

const LIMITS_FILE = '/proc/self/limits';
const ADDRESSES_LIMIT = /^Max address space\s+(\d+|unlimited)\s/m;
const DESCRIPTORS_LIMIT = /^Max open files\s+(\d+|unlimited)\s/m;
const STATUS_FILE = '/proc/self/status';
/** In kB. */
const ADDRESSES_TAKEN = /^VmSize:\s+(\d+) kB$/m;

/**
 * One look serves all that an opening asks for where there are plenty: 1 TiB of addresses, 1,024 descriptors more than the process has ever had.
 * Limits can change while the process runs, so it does not serve long.
 */
const PLENTY_MS = 2;
const PLENTY_ADDRESS_BYTES = 2 ** 40;
const PLENTY_DESCRIPTORS = 1024;
let plenty = { addresses: false, descriptors: false, seenMs: Number.NEGATIVE_INFINITY };

/** Bytes of addresses that the process can have: its limit (`ulimit -v`), and what the processor's page tables reach. */
export function addressBytesMax(): number | null {
  const limit = limitIn(readSystemFile(LIMITS_FILE), ADDRESSES_LIMIT);
  return limit === null ? null : Math.min(limit, userSpaceBytes());
}

/** Files that the process can have open at a time. Node raises the soft limit to the hard one when it starts. */
export function descriptorsMax(): number | null {
  return limitIn(readSystemFile(LIMITS_FILE), DESCRIPTORS_LIMIT);
}

/** Mappings that the kernel gives a process (`vm.max_map_count`). */
export function mappingsMax(): number | null {
  return numberIn('/proc/sys/vm/max_map_count', /^(\d+)$/m);
}

/**
 * Errors: `storage` with the figures, unless so many bytes of addresses, and some to spare, are free. doing: for the error, «cannot …».
 */
export function requireAddresses(bytes: number, doing: string, spare = SPARE_ADDRESS_BYTES): void {
  if (bytes <= PLENTY_ADDRESS_BYTES / 4 && lookForPlenty().addresses) return;
  const max = addressBytesMax();
  const taken = addressBytesTaken();
  if (max === null || taken === null || taken + bytes + spare <= max) return;
  throw lacking(
    `${doing}: it takes ${gib(bytes)} GiB of addresses, and of ${gib(max)} GiB that the process can have ${gib(taken)} are taken; raise \`ulimit -v\`, or have fewer collections or shards on this node`,
  );
}

/** What a thread reserves when it begins: 0.6 GiB with Node.js 20, 0.8 to 1 GiB with Node.js 26 (`VmSize` before and after). */
const THREAD_ADDRESS_BYTES = 1.25 * 2 ** 30;

/**
 * Errors: `storage` with the figures, unless there are addresses for one more thread: V8 ends the process where it cannot reserve those of a
 * thread's heap. name: of the thread.
 */
export function requireThreadAddresses(name: string): void {
  requireAddresses(THREAD_ADDRESS_BYTES, `cannot start thread ${name}`);
}

/** Errors: `storage` with the figures, unless some more files can be opened. folder: any that exists. */
export function requireDescriptors(folder: string, doing: string): void {
  if (lookForPlenty().descriptors) return;
  const opened: number[] = [];
  let refusal: unknown = null;
  try {
    while (opened.length < SPARE_DESCRIPTORS) opened.push(fs.openSync(folder, 'r'));
  } catch (error) {
    refusal = error;
  }
  for (const descriptor of opened) fs.closeSync(descriptor);
  if (refusal === null) return;
  throw lacking(
    `${doing}: ${opened.length} more files can be opened, and ${SPARE_DESCRIPTORS} are needed (${codeOf(refusal)}; the limit is ${descriptorsMax() ?? 'not known'}); raise \`ulimit -n\``,
    refusal,
  );
}

/** False: not known. */
function lookForPlenty(): { readonly addresses: boolean; readonly descriptors: boolean } {
  const nowMs = performance.now();
  if (nowMs - plenty.seenMs < PLENTY_MS) return plenty;
  const limits = readSystemFile(LIMITS_FILE);
  const status = readSystemFile(STATUS_FILE);
  const addressesMax = limitIn(limits, ADDRESSES_LIMIT) ?? 0;
  const taken = Number(ADDRESSES_TAKEN.exec(status)?.[1] ?? Number.POSITIVE_INFINITY) * 1024;
  // The kernel's table of those that are open, which doubles when it is full.
  const table = Number(/^FDSize:\s+(\d+)$/m.exec(status)?.[1] ?? Number.POSITIVE_INFINITY);
  plenty = {
    addresses: Math.min(addressesMax, userSpaceBytes()) - taken >= PLENTY_ADDRESS_BYTES,
    descriptors: (limitIn(limits, DESCRIPTORS_LIMIT) ?? 0) >= 2 * table + PLENTY_DESCRIPTORS,
    seenMs: nowMs,
  };
  return plenty;
}

/** Beyond so many bytes that are said to be free, those of the probe are there without waiting for the disk. */
const ROOMY_BYTES = 2 ** 30;

/** Errors: `storage` with the figures, unless the disk takes so many more bytes: a file of that size is written and removed. */
export function requireDiskRoom(folder: string, bytes: number, doing: string): void {
  const probe = path.join(folder, 'room.tmp');
  try {
    const descriptor = fs.openSync(probe, 'w');
    try {
      fs.writeFileSync(descriptor, new Uint8Array(bytes));
      if ((freeBytes(folder) ?? 0) < ROOMY_BYTES) fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (error) {
    throw lacking(
      `${doing}: ${bytes} more bytes cannot be written (${codeOf(error)}; ${freeBytes(folder) ?? 'an unknown number of'} bytes are free); make room on the disk`,
      error,
    );
  } finally {
    removeIfThere(probe);
  }
}

/** A lack of something that others may give back: nothing of what was asked for was done. */
export function lacking(detail: string, cause?: unknown): TroupeError {
  return new TroupeError('storage', detail, { outcome: 'none', ...(cause === undefined ? {} : { cause }) });
}

let knownUserSpaceBytes: number | null = null;

/** Up to the stack, which lies at the end. */
function userSpaceBytes(): number {
  if (knownUserSpaceBytes !== null) return knownUserSpaceBytes;
  const end = /^[0-9a-f]+-([0-9a-f]+) .*\[stack\]$/m.exec(readSystemFile('/proc/self/maps'))?.[1];
  const bits = end === undefined ? USER_BITS : Math.ceil(Math.log2(Number.parseInt(end, 16)));
  knownUserSpaceBytes = 2 ** bits;
  return knownUserSpaceBytes;
}

/** Bytes of addresses that are taken. */
function addressBytesTaken(): number | null {
  const kilobytes = numberIn(STATUS_FILE, ADDRESSES_TAKEN);
  return kilobytes === null ? null : kilobytes * 1024;
}

/** A limit in the text of /proc/self/limits, its soft value; infinite where there is none, null where it is not known. */
function limitIn(text: string, limit: RegExp): number | null {
  const value = limit.exec(text)?.[1];
  if (value === undefined) return null;
  return value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value);
}

function numberIn(file: string, pattern: RegExp): number | null {
  const value = pattern.exec(readSystemFile(file))?.[1];
  return value === undefined ? null : Number(value);
}

export function freeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = fs.statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

function removeIfThere(file: string): void {
  try {
    fs.rmSync(file, { force: true });
  } catch {}
}

/** The code of a system call’s error. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

function gib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(bytes < 100 * 2 ** 30 ? 1 : 0);
}
