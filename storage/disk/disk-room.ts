/**
 * What a nearly full disk still takes.
 *
 * - **Disk-D1** Below a mark of free bytes, writes that need room are refused before anything of them is done (507). Reads and what removes
 *   something go on.
 * - **Disk-D2** A reserve file lies in the storage folder. It is given up when nothing else is free, so that a node can start, delete and
 *   make segments smaller on a full disk. It is made again when there is room for it above the mark.
 * - **Disk-D3** Copies of other replicas (entries of a leader, points and files of a transfer) are taken down to half of the mark: where disks are
 *   alike, the leader refuses its clients first, and no follower falls behind. A follower that refuses is taken for one that does not answer: its
 *   leader waits, then has it made Dead, and a transfer fills it when there is room.
 * - **Disk-D4** A disk that was below its mark counts as full until half of the mark more is free. A node of a cluster tells its peers so, and
 *   others lead its shards meanwhile (Transfer-M15).
 */

import { TAKES_ROOM } from '../../protocols/model/update.js';
import { updateKindOf } from '../../protocols/update-codec.js';

const MEBIBYTE = 1 << 20;
/** Share of the disk that stays free, within bounds, where the settings say nothing. */
const FREE_SHARE = 0.02;
const FREE_BYTES_MIN = 4 * MEBIBYTE;
const FREE_BYTES_MAX = 512 * MEBIBYTE;
/** The reserve is given up while this much is still free: what runs at that moment needs some of it. */
const LAST_BYTES = MEBIBYTE;

export interface DiskFigures {
  readonly totalBytes: number;
  /** For this process: what is kept for the system's administrator does not count. */
  readonly freeBytes: number;
}

export interface DiskMarks {
  /** With less than this free, writes that need room are refused. */
  readonly freeBytesMin: number;
  /** Size of the reserve; 0 for none. */
  readonly reserveBytes: number;
}

/** Settings in megabytes. freeMegabytes: null for 2 % of the disk, between 4 and 512 MB. */
export function diskMarks(totalBytes: number, freeMegabytes: number | null, reserveMegabytes: number): DiskMarks {
  const share = Math.min(FREE_BYTES_MAX, Math.max(FREE_BYTES_MIN, Math.floor(totalBytes * FREE_SHARE)));
  return { freeBytesMin: freeMegabytes === null ? share : freeMegabytes * MEBIBYTE, reserveBytes: reserveMegabytes * MEBIBYTE };
}

/** Whether a write that needs room may begin. bytes: of its body. heldBytes: of the reserve; what it lacks is no room for writes. */
export function hasRoomFor({ freeBytesMin, reserveBytes }: DiskMarks, freeBytes: number, heldBytes: number, bytes: number): boolean {
  return freeBytes - bytes >= freeBytesMin + Math.max(0, reserveBytes - heldBytes);
}

/** Whether the disk counts as full (Disk-D4). Without the half of the mark, leads would come and go with every deletion. */
export function isFull(marks: DiskMarks, freeBytes: number, heldBytes: number, wasFull: boolean): boolean {
  return !hasRoomFor(marks, freeBytes, heldBytes, wasFull ? Math.ceil(marks.freeBytesMin / 2) : 0);
}

/** The mark for copies (Disk-D3). */
export function copyMarks(marks: DiskMarks): DiskMarks {
  return { ...marks, freeBytesMin: Math.floor(marks.freeBytesMin / 2) };
}

/** Whether one of these encoded operations needs room. Empty ones (barriers) need none. */
export function takesRoom(operations: Iterable<Uint8Array>): boolean {
  for (const bytes of operations) {
    const kind = updateKindOf(bytes);
    if (kind === null || TAKES_ROOM[kind]) return true;
  }
  return false;
}

/** What to do about the reserve. heldBytes: its size now, 0 if there is none. */
export function reserveMove({ freeBytesMin, reserveBytes }: DiskMarks, freeBytes: number, heldBytes: number): 'make' | 'giveUp' | null {
  if (heldBytes > 0 && (reserveBytes === 0 || freeBytes < LAST_BYTES)) return 'giveUp';
  return reserveBytes > heldBytes && freeBytes >= freeBytesMin + reserveBytes ? 'make' : null;
}
