/** Sample messages of an optimizer. */

import type { OptimizerMessage } from '../../../actors/optimizer/messages.js';
import { buildsOf, type OptimizerState, wantedOf } from '../../../actors/optimizer/state.js';
import { startOptimizer, stepOptimizer } from '../../../actors/optimizer/step.js';
import { dueSegment, indexedSegment, sampleConfig, sampleSegment, sampleStats } from '../../actors/samples.js';
import type { Machine } from '../walk.js';

const CONFIG = sampleConfig();
/** Long after the last write. */
const nowMs = 1e12;
const DUE = sampleStats([dueSegment({ id: 1 })]);
/** An index of a field is built beside the graph. */
const LACKING = sampleStats([dueSegment({ id: 1, building: true }), indexedSegment({ id: 2, missingFields: ['color'] })]);
const DONE = sampleStats([sampleSegment({ id: 3 }), indexedSegment({ id: 4 })]);

function inputs(state: OptimizerState): OptimizerMessage[] {
  const id = buildsOf(state)[0]?.id ?? 0;
  return [
    ...[DUE, LACKING, DONE].map((stats) => ({ kind: 'stats', stats, paceBytesPerSecond: 0, nowMs }) as const),
    { kind: 'configure', config: CONFIG, nowMs },
    { kind: 'wake', nowMs },
    { kind: 'granted', id: wantedOf(state)?.id ?? 0, threads: 1, nowMs },
    { kind: 'lacksRoom', id: wantedOf(state)?.id ?? 0, leftBytes: 100_000, nowMs },
    { kind: 'progress', id, progress: { stage: 'reading', done: 1, total: 2 } },
    ...[DUE, DONE].map((stats) => ({ kind: 'built', id, report: { rows: 1, milliseconds: 1, graphs: [] }, stats, nowMs }) as const),
    { kind: 'buildFailed', id, error: { code: 'storage', detail: 'the disk is full' }, nowMs },
    { kind: 'cooled', nowMs },
  ];
}

export const OPTIMIZER: Machine<OptimizerState, OptimizerMessage> = {
  step: stepOptimizer,
  starts: [startOptimizer(CONFIG, { cpus: 4 }).state],
  inputs,
};
