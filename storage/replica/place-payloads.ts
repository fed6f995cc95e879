import type { CollectionConfig } from '../../protocols/model/collection.js';
import { readPayloadBytes } from '../segment/payload-file.js';
import type { SegmentRows } from './segment-rows.js';
import type { Transaction } from './transaction.js';

/** Loads the payloads of a sealed segment into memory or leaves them on disk, as `on_disk_payload` says. */
export function placePayloads(segment: SegmentRows, config: CollectionConfig, transaction?: Transaction): void {
  const { handle } = segment;
  const onDisk = config.params.on_disk_payload;
  if (segment.isAppendable || handle.folder === null || (handle.payloadBytes === null) === onDisk) return;
  segment.handle = { ...handle, payloadBytes: onDisk ? null : readPayloadBytes(handle.folder) };
  transaction?.onUndo(() => {
    segment.handle = handle;
  });
}
