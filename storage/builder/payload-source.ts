/** Payload texts of a build's sources: from LMDB for appendable segments, from the payload file for sealed ones. */

import { openReplicaView, type ReplicaView } from '../replica/reader-view.js';
import type { SegmentHandle } from '../segment/handle.js';
import { closeSegmentFiles, type PayloadTexts, placesByRow, readPayloadText, readPayloadTexts } from '../segment/payload-file.js';
import type { BuildJob } from '../threads/messages.js';

export interface PayloadSource {
  /** JSON text of a row's payload; empty or `{}` for an empty one. Valid until the next call. */
  text(source: SegmentHandle, row: number): Uint8Array;
  /** The texts of some rows in any order, fewer than 2^20, read at once; null where one by one takes no longer. */
  texts(source: SegmentHandle, rows: Uint32Array): PayloadTexts | null;
  close(): Promise<void>;
}

const NO_PAYLOAD = new Uint8Array(0);

/**
 * Opens what the job's sources need. Rows are immutable, so any snapshot of LMDB serves that is as new as the job.
 * Close it soon: the snapshot keeps LMDB from using old pages again.
 */
export function openPayloadSource(job: BuildJob): PayloadSource {
  let view: ReplicaView | null = null;
  if (job.sources.some((source) => source.kind === 'appendable')) {
    view = openReplicaView(job.spec.folder);
    view.refresh();
  }
  return {
    text(source, row) {
      if (source.kind === 'sealed') return readPayloadText(source, row);
      return view?.payloadText(source, row) ?? NO_PAYLOAD;
    },
    texts(source, rows) {
      if (source.kind === 'appendable') return textsByRow(rows, (row) => view?.payloadText(source, row) ?? NO_PAYLOAD);
      return source.payloadBytes === null ? readPayloadTexts(source, rows) : null;
    },
    async close() {
      for (const source of job.sources) if (source.kind === 'sealed') closeSegmentFiles(source);
      await view?.close();
    },
  };
}

/** Asks for texts in the order of rows: rows one after the other share a record of LMDB. */
function textsByRow(rows: Uint32Array, textOf: (row: number) => Uint8Array): PayloadTexts {
  const texts: Uint8Array[] = new Array(rows.length);
  for (const place of placesByRow(rows)) texts[place] = textOf(rows[place] as number);
  return (place) => texts[place] as Uint8Array;
}
