/** Field indexes of a sealed segment, built from its payloads. */

import { parseValues } from '../../protocols/json.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { FieldIndexHandle, SegmentHandle } from '../segment/handle.js';
import { FieldIndexBuild } from '../segment/index/build.js';
import { closeSegmentFiles, readPayloadText } from '../segment/payload-file.js';
import { fieldIndexHandle, writeFieldIndex } from '../segment/sealed.js';
import type { BuildJob, BuildResult } from '../threads/messages.js';
import type { BuildControl } from './control.js';

/** Memory of the indexes that are made at once: each payload is read and parsed for all of them. */
const BUILDS_BYTES_MAX = 1 << 26;
/** Rows between two checkpoints. */
const SLICE_ROWS = 4096;

/** Builds and writes the index files of `fields` into the segment's folder. bytesMax: of the indexes that are made at once, if there are several. */
export async function buildFieldIndexes(
  segment: SegmentHandle,
  fields: ReadonlyMap<string, FieldSchema>,
  control: BuildControl,
  bytesMax = BUILDS_BYTES_MAX,
): Promise<FieldIndexHandle[]> {
  const folder = segment.folder as string;
  const indexes = new Map<string, FieldIndexHandle>();
  for (let waiting: ReadonlyMap<string, FieldSchema> = fields; waiting.size > 0; ) {
    const builds = await collectFields(segment, waiting, control, bytesMax);
    for (const [field, build] of builds) {
      await control.checkpoint();
      control.progress(`indexing ${field}`, indexes.size, fields.size);
      const index: FieldIndexHandle = { ...(fields.get(field) as FieldSchema), field, buffer: build.finish() };
      builds.delete(field);
      writeFieldIndex(folder, segment.id, index);
      indexes.set(field, fieldIndexHandle(folder, index));
    }
    waiting = new Map([...waiting].filter(([field]) => !indexes.has(field)));
  }
  return [...fields.keys()].map((field) => indexes.get(field) as FieldIndexHandle);
}

/** Reads all payloads for as many of the fields as fit in memory together, one at least. Those that take most are left for another time. */
async function collectFields(
  segment: SegmentHandle,
  fields: ReadonlyMap<string, FieldSchema>,
  control: BuildControl,
  bytesMax: number,
): Promise<Map<string, FieldIndexBuild>> {
  const builds = new Map([...fields].map(([field, schema]) => [field, new FieldIndexBuild(schema, segment.rows, field)]));
  for (let from = 0; from < segment.rows; from += SLICE_ROWS) {
    await control.checkpoint();
    control.progress('reading payloads', from, segment.rows);
    const to = Math.min(segment.rows, from + SLICE_ROWS);
    for (let row = from; row < to; row++) {
      const payload = parseValues(readPayloadText(segment, row)) as Payload;
      for (const build of builds.values()) build.add(row, payload);
    }
    const sizes = [...builds].map(([field, { bytes }]) => ({ field, bytes })).sort((one, other) => other.bytes - one.bytes);
    for (let total = sizes.reduce((sum, { bytes }) => sum + bytes, 0); total > bytesMax && sizes.length > 1; ) {
      const { bytes, field } = sizes.shift() as (typeof sizes)[number];
      builds.delete(field);
      total -= bytes;
    }
  }
  return builds;
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
