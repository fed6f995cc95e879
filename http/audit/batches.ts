/** Records that wait to be written: what of a batch was written, and what is kept of those that cannot be. */

export interface AuditBatch {
  /** The file that its records belong to. */
  readonly file: string;
  /** Whole lines. */
  readonly bytes: Buffer;
  readonly records: number;
}

const LF = 10;

/** The rest of a batch of which only so many bytes were written: from its first line that is not whole on. */
export function restAfter(batch: AuditBatch, writtenBytes: number): AuditBatch {
  const end = batch.bytes.lastIndexOf(LF, writtenBytes - 1) + 1;
  const bytes = writtenBytes <= 0 ? batch.bytes : batch.bytes.subarray(end);
  return { file: batch.file, bytes, records: linesIn(bytes) };
}

export function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) lines++;
  return lines;
}
