/** Shards and replicas, measured in parts that can be run one by one. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeSynthetic } from '../common/dataset.js';
import { startHelper } from '../common/helper.js';
import type { ToBaseline, ToLoad } from '../common/jobs.js';
import { machine } from '../common/measure.js';
import { measureMoves } from './moves.js';
import type { Measured, ReplicationReport } from './report.js';
import { measureResharding } from './resharding.js';
import { measureThroughput } from './throughput.js';

export const REPLICATION_PARTS = ['throughput', 'moves', 'resharding'] as const;
export type ReplicationPart = (typeof REPLICATION_PARTS)[number];

export interface ReplicationSettings {
  readonly parts: readonly ReplicationPart[];
  /** Of transfers that are measured. */
  readonly methods: readonly string[];
  /** Points of each part. */
  readonly counts: Readonly<Record<ReplicationPart, number>>;
  readonly seconds: number;
  readonly seed: number;
  readonly command: string;
  /** For folders of nodes; emptied after each part. */
  readonly temporary: string;
  readonly nodeArguments: readonly string[];
  /** Of `throughput`: see `ThroughputSettings`. name: how its column is called. */
  readonly beside: { readonly folder: string; readonly name: string } | null;
  /** What earlier runs have left of other parts is kept; null: nothing is read or written. */
  readonly resultsFile: string | null;
}

const DIM = 128;
const QUERIES = 500;

/** What this and earlier runs have measured. */
export async function measureReplication(settings: ReplicationSettings): Promise<ReplicationReport> {
  const { beside, command, counts, nodeArguments, parts, resultsFile, seconds, seed } = settings;
  let report: ReplicationReport = resultsFile !== null && existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
  for (const part of parts) {
    const folder = mkdtempSync(join(settings.temporary, 'troupe-bench-'));
    const dataset = makeSynthetic(counts[part], DIM, QUERIES, seed);
    const load = startHelper<ToLoad>('load');
    const baseline = startHelper<ToBaseline>('baseline');
    const common = { dataset, seconds, folder, load, baseline, nodeArguments, say };
    say(`${part}: ${dataset.description}; seed ${seed}`);
    const measured = <Row>(rows: Row[]): Measured<Row> => {
      const date = new Date().toISOString().slice(0, 10);
      return { command, date, machine: machine(), description: `${dataset.description}; seed ${seed}`, rows };
    };
    try {
      if (part === 'throughput') {
        const rows = await measureThroughput({ ...common, beside: beside?.folder ?? null });
        report = { ...report, throughput: { ...measured(rows), besideName: beside?.name ?? null } };
      }
      if (part === 'moves') report = { ...report, moves: measured(await measureMoves({ ...common, methods: settings.methods })) };
      if (part === 'resharding') report = { ...report, resharding: measured(await measureResharding(common)) };
    } finally {
      load.end();
      baseline.end();
      rmSync(folder, { recursive: true, force: true });
    }
    if (resultsFile !== null) {
      mkdirSync(dirname(resultsFile), { recursive: true });
      writeFileSync(resultsFile, `${JSON.stringify(report, null, 2)}\n`);
    }
  }
  return report;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
