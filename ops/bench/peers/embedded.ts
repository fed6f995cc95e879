/**
 * A node within a program, in a process of its own that is asked as `peer.py` is: `embedded.js FOLDER`. A search goes to a reader thread and comes back, so
 * four are under way at a time, as they are over the doors.
 */

import { readFileSync, statSync } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Filter, Troupe } from '../../troupe.js';
import { type BenchPayload, PAYLOAD_FIELDS } from '../common/dataset.js';
import { UPLOAD_BATCH } from '../common/prepared.js';
import { BUILT_QUIET_MS, untilGreen } from '../common/until-built.js';
import type { AskedOfPeer, Built, PeerSlice } from './peer-process.js';
import { type DescribedSet, PAYLOADS_FILE, SET_FILE } from './set-files.js';

const COLLECTION = 'peers';
const UNDER_WAY = 4;

const folder = process.argv[2] as string;
const own = join(folder, 'embedded');
const set = JSON.parse(readFileSync(join(folder, SET_FILE), 'utf8')) as DescribedSet;
const { dim, filters, isCosine, k } = set;
const queries = rowsOf(readFileSync(set.queriesFile));
await mkdir(own);
const troupe = await Troupe.open({ path: own });

tell({ hasFilters: true, folder: own });
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as AskedOfPeer;
  tell(asked.kind === 'build' ? await build() : await searched(asked));
}
await troupe.close();

async function build(): Promise<Built> {
  const started = performance.now();
  const cpu = process.cpuUsage();
  await troupe.createCollection(COLLECTION, { vectors: { size: dim, distance: isCosine ? 'Cosine' : 'Euclid' } });
  for (const [field_name, field_schema] of Object.entries(PAYLOAD_FIELDS))
    await troupe.createFieldIndex(COLLECTION, { field_name, field_schema });
  await upload(JSON.parse(readFileSync(join(folder, PAYLOADS_FILE), 'utf8')) as BenchPayload[]);
  await untilGreen(() => troupe.getCollection(COLLECTION), { pollMs: 200, quietMs: BUILT_QUIET_MS });
  const { system, user } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - started - BUILT_QUIET_MS) / 1000, cpuSeconds: (system + user) / 1e6 };
}

async function upload(payloads: readonly BenchPayload[]): Promise<void> {
  const file = await open(set.vectorsFile);
  const count = statSync(set.vectorsFile).size / (4 * dim);
  let next = 0;
  const uploader = async () => {
    while (next < count) {
      const first = next;
      next += UPLOAD_BATCH;
      const bytes = Buffer.alloc(4 * dim * Math.min(UPLOAD_BATCH, count - first));
      await file.read(bytes, 0, bytes.length, first * dim * 4);
      const points = rowsOf(bytes).map((vector, at) => ({ id: first + at, vector, payload: payloads[first + at] }));
      await troupe.upsert(COLLECTION, { points });
    }
  };
  await Promise.all(Array.from({ length: UNDER_WAY }, uploader));
  await file.close();
}

/** seconds: 0 for each query once. */
async function searched({ ef, filter, seconds }: Extract<AskedOfPeer, { readonly kind: 'search' }>): Promise<PeerSlice> {
  const found: number[][] = [];
  const condition = filter === null ? undefined : (filters[filter] as Filter);
  const started = performance.now();
  const cpu = process.cpuUsage();
  let next = 0;
  let done = 0;
  const searcher = async () => {
    while (seconds === 0 ? next < queries.length : performance.now() - started < seconds * 1000) {
      const at = next++ % queries.length;
      const query = queries[at] as Float32Array;
      const { points } = await troupe.query(COLLECTION, {
        query,
        limit: k,
        params: { hnsw_ef: ef },
        ...(condition && { filter: condition }),
      });
      if (seconds === 0) found[at] = points.map(({ id }) => Number(id));
      done++;
    }
  };
  await Promise.all(Array.from({ length: UNDER_WAY }, searcher));
  const { system, user } = process.cpuUsage(cpu);
  const cpuSeconds = (system + user) / 1e6;
  return { searches: done, seconds: (performance.now() - started) / 1000, cpuSeconds, found: seconds === 0 ? found : null };
}

function rowsOf({ buffer, byteLength, byteOffset }: Buffer): Float32Array[] {
  const all = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
  return Array.from({ length: all.length / dim }, (_, row) => all.slice(row * dim, (row + 1) * dim));
}

function tell(answer: object): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
