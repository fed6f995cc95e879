/**
 * Scratch space of one worker inside a segment's memory: a kernel sees one memory only, so its query,
 * visited set, lists and heaps lie beside the vectors. All offsets are bytes from the slot's start.
 */

/** Small enough to be in the processor's cache still when it is scored, large enough for few reads. */
const STAGING_BYTES = 1 << 18;
const NEIGHBOURS_BYTES = 4096 * 4;

export interface ScratchLayout {
  /** f32 [dimMax padded]: the query as the originals are scored with it. */
  readonly query: number;
  /** The query as the codes are scored with it: i16 [dimMax padded], or what a quantizer asks for. */
  readonly codeQuery: number;
  /** u32 words, one bit per row: rows a filter lets through. */
  readonly bits: number;
  /** u32 words, one bit per row: rows a walk has seen. */
  readonly visited: number;
  /** u32 [capacity]: a list of rows (gather input). */
  readonly rows: number;
  /** (f32 score, u32 row) [capacity]: candidates of a walk. */
  readonly candidates: number;
  /** (f32 score, u32 row) [capacity + 1]: best results, and the sorted answer. */
  readonly results: number;
  /** u32 [4096]: neighbours of one step; vectors of a query of MaxSim. */
  readonly neighbours: number;
  readonly neighboursBytes: number;
  /** Rows of originals that are not in memory, while they are scored. */
  readonly staging: number;
  /** Room there; 0 where all originals are in memory. */
  readonly stagingBytes: number;
  /** Bytes of one slot, a multiple of 64. */
  readonly bytes: number;
}

/**
 * Scratch of a segment with `capacity` rows whose widest vector has `dimMax` components.
 * stagedStride: bytes of the widest row that is read from a file to be scored; 0 for none.
 * queryBytes: of the largest query that a quantizer makes.
 */
export function scratchLayout(capacity: number, dimMax: number, stagedStride = 0, queryBytes = 0): ScratchLayout {
  const words = Math.ceil(capacity / 32) * 4;
  let at = 0;
  const take = (bytes: number): number => {
    const offset = at;
    at += align64(bytes);
    return offset;
  };
  const query = take(dimMax * 4 + 64);
  const codeQuery = take(Math.max(dimMax * 2 + 64, queryBytes));
  const bits = take(words + 16);
  const visited = take(words + 16);
  const rows = take(capacity * 4);
  const candidates = take((capacity + 1) * 8);
  const results = take((capacity + 1) * 8);
  const neighbours = take(NEIGHBOURS_BYTES);
  const stagingBytes = stagedStride === 0 ? 0 : Math.max(STAGING_BYTES, stagedStride);
  const staging = take(stagingBytes);
  return {
    query,
    codeQuery,
    bits,
    visited,
    rows,
    candidates,
    results,
    neighbours,
    neighboursBytes: NEIGHBOURS_BYTES,
    staging,
    stagingBytes,
    bytes: at,
  };
}

export function align64(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}

export function align16(bytes: number): number {
  return Math.ceil(bytes / 16) * 16;
}
