/** Field indexes of a sealed segment, built from its payloads. */

import { parseValues } from '../../protocols/json.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { FieldIndexHandle, SegmentHandle } from '../segment/handle.js';
import { buildFieldIndex } from '../segment/index/build.js';
import { closeSegmentFiles, readPayloadText } from '../segment/payload-file.js';
import { fieldIndexHandle, writeFieldIndex } from '../segment/sealed.js';
import type { BuildJob, BuildResult } from '../threads/messages.js';
import type { BuildControl } from './control.js';

/** Payload texts up to this size are parsed once for all fields; larger ones again for each field, to keep memory low. */
const KEPT_BYTES_MAX = 1 << 24;

/** Builds and writes the index files of `fields` into the segment's folder. */
export async function buildFieldIndexes(
  segment: SegmentHandle,
  fields: ReadonlyMap<string, FieldSchema>,
  control: BuildControl,
): Promise<FieldIndexHandle[]> {
  const indexes: FieldIndexHandle[] = [];
  const payloadOf = payloadReader(segment, fields.size);
  for (const [field, schema] of fields) {
    await control.checkpoint();
    control.progress(`indexing ${field}`, indexes.length, fields.size);
    const buffer = buildFieldIndex(schema, segment.rows, payloadOf, field);
    const index: FieldIndexHandle = { ...schema, field, buffer };
    const folder = segment.folder as string;
    writeFieldIndex(folder, segment.id, index);
    indexes.push(fieldIndexHandle(folder, index));
  }
  return indexes;
}

/** Carries out a `fieldIndex` job: the one source goes on with more indexes, in the same memory. */
export async function buildMissingFields(job: BuildJob, control: BuildControl): Promise<BuildResult> {
  const started = control.now();
  const source = job.sources[0];
  if (source === undefined || source.kind !== 'sealed') throw new Error('a fieldIndex job has one sealed source');
  const wanted = new Map([...job.fields].filter(([field]) => job.missingFields.includes(field)));
  try {
    const built = await buildFieldIndexes(source, wanted, control);
    const kept = source.fieldIndexes.filter(({ field }) => !wanted.has(field));
    const report = { rows: source.rows, milliseconds: Math.round(control.now() - started), graphs: [] };
    return {
      plan: 'fieldIndex',
      sources: [source.id],
      built: [{ handle: { ...source, fieldIndexes: [...kept, ...built] }, rowMaps: [] }],
      seq: job.seq,
      report,
    };
  } finally {
    closeSegmentFiles(source);
  }
}

function payloadReader(segment: SegmentHandle, fields: number): (row: number) => Payload {
  const read = (row: number) => parseValues(readPayloadText(segment, row)) as Payload;
  if (fields < 2 || payloadBytes(segment) > KEPT_BYTES_MAX) return read;
  const kept: (Payload | undefined)[] = new Array(segment.rows);
  return (row) => {
    const known = kept[row];
    if (known !== undefined) return known;
    const payload = read(row);
    kept[row] = payload;
    return payload;
  };
}

function payloadBytes(segment: SegmentHandle): number {
  const offsets = new Float64Array(segment.payloadOffsets as SharedArrayBuffer);
  return (offsets[segment.rows] as number) - (offsets[0] as number);
}
