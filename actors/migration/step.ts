/**
 * What a migration does about each message in each state: a shard's leader brings points to other shards, in the stages that are agreed
 * on (cluster/apply/migration.ts). Its rules are Migr-D4 to Migr-D6 in actors/README.md.
 *
 * copying, switching: Informing → Indexing → Settling → Counting → passes of Reading and Copying → Fencing → Comparing → Listing,
 * Checking and Removing → Finishing. cleaning: Informing → walks of Settling, Sweeping and Deleting → Finishing.
 */

import type { MigrationPart, MigrationTask } from '../../cluster/apply/migration.js';
import { noProgress, type TransferProgress } from '../../cluster/transfer/progress.js';
import type { ErrorCode } from '../../protocols/errors.js';
import { decide, ignore, type Of, type Row, type Table } from '../../protocols/machine.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { become, type Step } from '../runtime/behaviour.js';
import { countOn, enter } from './calls.js';
import type { MigrationEffect, MigrationMessage } from './messages.js';
import {
  type Checking,
  type Cleansing,
  type ComparingMigration,
  type CopyingMigration,
  type Counting,
  cleansingOf,
  type Deleting,
  type Fencing,
  type Idle,
  type Indexing,
  type Informing,
  idle,
  type Listing,
  type MigrationMemory,
  type MigrationStage,
  type MigrationState,
  over,
  type Passing,
  passingOf,
  type ReadingMigration,
  type Removing,
  type Settled,
  type Settling,
  type Sweeping,
  settledOf,
  stageOf,
  type Tally,
  type WaitingMigration,
  type Working,
  waiting,
} from './state.js';

type MigrationStep = Step<MigrationState, MigrationEffect>;
type MessageOf<Kind extends MigrationMessage['kind']> = Of<MigrationMessage, Kind>;

/** A pass that has copied no more points is followed by the switch, during which writes wait for the next one. */
const SMALL_PASS = 500;
const PASSES_MAX = 20;
/** Errors that another try of the same call may not meet. All of it may be done twice (Migr-D5). */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['unavailable', 'conflict', 'busy', 'timeout']);

const IGNORE_ALL: Row<MigrationMessage, MigrationState, MigrationStep> = {
  agreed: ignore,
  informed: ignore,
  indexed: ignore,
  barrierPassed: ignore,
  counted: ignore,
  pageRead: ignore,
  idsRead: ignore,
  deletionMade: ignore,
  written: ignore,
  finished: ignore,
  failed: ignore,
  retry: ignore,
};

/** What goes for all states that have called for something. */
const AT_WORK = { ...IGNORE_ALL, agreed: takeAgreed, failed: callAgain };

/** Each state has one answer that it waits for, or its failure. */
export const MIGRATION_TABLE: Table<MigrationState, MigrationMessage, MigrationStep> = {
  Idle: { ...IGNORE_ALL, agreed: beginStage },
  Informing: { ...AT_WORK, informed: takeInformed },
  Indexing: { ...AT_WORK, indexed: takeIndexed, failed: beginAgain },
  Settling: { ...AT_WORK, barrierPassed: takeSettled },
  Counting: { ...AT_WORK, counted: takeCounted },
  Reading: { ...AT_WORK, pageRead: takePage },
  Copying: { ...AT_WORK, written: takeCopied },
  Fencing: { ...AT_WORK, barrierPassed: takeFenced },
  Comparing: { ...AT_WORK, idsRead: takeTally },
  Listing: { ...AT_WORK, idsRead: takeListed },
  Checking: { ...AT_WORK, deletionMade: takeChecked },
  Removing: { ...AT_WORK, written: takeRemoved },
  Sweeping: { ...AT_WORK, deletionMade: takeSwept },
  Deleting: { ...AT_WORK, written: takeDeleted },
  // What is agreed says that it is done.
  Finishing: { ...AT_WORK, failed: beginAgain },
  Waiting: { ...IGNORE_ALL, agreed: takeAgreedWaiting, retry: tryAgain },
  Over: IGNORE_ALL,
};

export function startMigration(task: MigrationTask): MigrationStep {
  return become<MigrationState, MigrationEffect>(idle({ task, call: 0, sequence: 0, copiedUpTo: -1 }), { kind: 'watch' });
}

export function stepMigration(state: MigrationState, message: MigrationMessage): MigrationStep {
  // An answer to an earlier call: the stage has changed since, or the call has failed.
  if ('call' in message && message.call !== state.call) return ignore(state);
  return decide(MIGRATION_TABLE, state, message);
}

// ---------------------------------------------------------------- stages

function beginStage(state: Idle, { nowMs, part }: MessageOf<'agreed'>): MigrationStep {
  return part?.isDone === true ? ignore(state) : enterStage(state, part, nowMs);
}

function takeAgreed(state: Working, message: MessageOf<'agreed'>): MigrationStep {
  const { part } = message;
  if (isOfStage(state, part)) return become({ ...state, part });
  return enterStage(state, part, message.nowMs);
}

function takeAgreedWaiting(state: WaitingMigration, { nowMs, part }: MessageOf<'agreed'>): MigrationStep {
  if (isOfStage(state.next, part)) return become({ ...state, next: { ...state.next, part } });
  return enterStage(state.next, part, nowMs);
}

function isOfStage(state: Working, part: MigrationPart | null): part is MigrationPart {
  return part !== null && !part.isDone && part.migration.stage === state.part.migration.stage;
}

function enterStage(memory: MigrationMemory, part: MigrationPart | null, nowMs: number): MigrationStep {
  if (part === null) return become<MigrationState, MigrationEffect>(over(memory), { kind: 'show', progress: null });
  if (part.isDone) return become<MigrationState, MigrationEffect>(idle(memory), { kind: 'show', progress: null });
  const progress = noProgress('stream_records', part.migration.stage, nowMs);
  return inform({ ...idle(memory), part, progress }, { kind: 'show', progress });
}

/** Migr-D6 */
function inform(stage: MigrationStage, ...before: MigrationEffect[]): MigrationStep {
  return enter({ ...stageOf(stage), kind: 'Informing', informed: [] }, ...before);
}

function takeInformed(state: Informing, { peers }: MessageOf<'informed'>): MigrationStep {
  const informed = [...state.informed, ...peers];
  if (!state.part.readers.every((peer) => informed.includes(peer))) return wait({ ...state, informed });
  return isCleaning(state) ? settle(state) : indexNext(state, targetsToIndex(state));
}

/** One shard of the source tells of its indexes, and shards that have been there before have them. */
function targetsToIndex({ part: { migration }, task }: MigrationStage): readonly ShardId[] {
  const { mirrors, receiving, source } = migration;
  return mirrors && task.shardId === Math.min(...source) ? receiving.filter((id) => !source.includes(id)) : [];
}

function takeIndexed(state: Indexing): MigrationStep {
  return indexNext(state, state.targets);
}

function indexNext(stage: MigrationStage, [target, ...targets]: readonly ShardId[]): MigrationStep {
  return target === undefined ? settle(stage) : enter({ ...stageOf(stage), kind: 'Indexing', target, targets });
}

/** What was taken before the stage began is read, too. */
function settle(stage: MigrationStage): MigrationStep {
  return enter({ ...stageOf(stage), kind: 'Settling' });
}

function takeSettled(state: Settling, { index }: MessageOf<'barrierPassed'>): MigrationStep {
  const settled = { ...stageOf(state), index };
  if (isCleaning(state)) return enter({ ...settled, kind: 'Sweeping', removed: 0, from: null });
  return isTotalKnown(state) ? enter({ ...settled, kind: 'Counting' }) : beginPass(settled, 1);
}

/** Where all points of the shard go, it can be counted how many these are. */
function isTotalKnown({ part: { migration } }: MigrationStage): boolean {
  const { source, stage, target } = migration;
  return stage === 'copying' && !target.some((id) => source.includes(id));
}

function takeCounted(state: Counting, { count, nowMs }: MessageOf<'counted'>): MigrationStep {
  const { effects, state: counted } = shown(settledOf(state), { total: count, sendingSinceMs: nowMs });
  return beginPass(counted, 1, ...effects);
}

function finish(stage: MigrationStage): MigrationStep {
  return enter({ ...stageOf(stage), kind: 'Finishing' });
}

// ---------------------------------------------------------------- copies

function beginPass(settled: Settled, number: number, ...before: MigrationEffect[]): MigrationStep {
  const pass = { number, points: 0, upTo: Number.POSITIVE_INFINITY };
  return enter({ ...settledOf(settled), kind: 'Reading', pass, from: null }, ...before);
}

function takePage(state: ReadingMigration, { next, parts, position }: MessageOf<'pageRead'>): MigrationStep {
  const pass = { ...state.pass, upTo: Math.min(state.pass.upTo, position) };
  return copyNext({ ...passingOf(state), pass }, parts, next);
}

/** parts: of a page that are not copied yet. next: of the page after it. */
function copyNext(
  passing: Passing,
  [copied, ...parts]: CopyingMigration['parts'],
  next: PointId | null,
  ...before: MigrationEffect[]
): MigrationStep {
  if (copied !== undefined) return enter({ ...passingOf(passing), kind: 'Copying', copied, parts, next }, ...before);
  return next === null ? endPass(passing, before) : enter({ ...passingOf(passing), kind: 'Reading', from: next }, ...before);
}

function takeCopied(state: CopyingMigration): MigrationStep {
  const { copied, pass, progress } = state;
  const sent = progress.sent + copied.points;
  // What changed meanwhile is sent again.
  const total = progress.total === 0 ? 0 : Math.max(progress.total, sent);
  const { effects, state: passing } = shown(passingOf(state), { sent, total, bytes: progress.bytes + copied.operation.byteLength });
  return copyNext({ ...passing, pass: { ...pass, points: pass.points + copied.points } }, state.parts, state.next, ...effects);
}

/** Migr-D5: the last pass of a stage also removes copies whose point is gone. */
function endPass(passing: Passing, before: readonly MigrationEffect[]): MigrationStep {
  const { pass, part, task } = passing;
  const { mirrors, receiving, stage } = part.migration;
  const isLast = stage === 'switching' || pass.points <= SMALL_PASS || pass.number >= PASSES_MAX;
  if (!isLast) return beginPass({ ...passing, copiedUpTo: pass.upTo }, pass.number + 1, ...before);
  const targets = mirrors ? receiving.filter((id) => id !== task.shardId) : [];
  return cleanseNext(passing, targets, ...before);
}

// ---------------------------------------------------------------- copies whose point is gone

function cleanseNext(passing: Passing, [target, ...targets]: readonly ShardId[], ...before: MigrationEffect[]): MigrationStep {
  if (target !== undefined) return enter({ ...passingOf(passing), kind: 'Fencing', target, targets }, ...before);
  const { effects, state } = finish({ ...passing, copiedUpTo: passing.pass.upTo });
  return { state, effects: [...before, ...effects] };
}

/** Writes wait while shards switch, and most often no point is gone: then it is enough to count. */
function takeFenced(state: Fencing, { index }: MessageOf<'barrierPassed'>): MigrationStep {
  const { target, targets } = state;
  const cleansing = { ...passingOf(state), target, targets, targetIndex: index };
  if (state.part.migration.stage !== 'switching') return enter({ ...cleansing, kind: 'Listing', from: null });
  const nothing: Tally = { count: 0, isWhole: false, from: null };
  return enter({ ...cleansing, kind: 'Comparing', points: nothing, copies: nothing });
}

/** All points of this shard are in the target. So if the numbers are equal, nothing else is there. */
function takeTally(state: ComparingMigration, message: MessageOf<'idsRead'>): MigrationStep {
  const side = message.shardId === state.task.shardId ? 'points' : 'copies';
  const tally = { count: state[side].count + message.count, isWhole: message.next === null, from: message.next };
  const next: ComparingMigration = { ...state, [side]: tally };
  if (!tally.isWhole) return countOn(next, side);
  if (!next.points.isWhole || !next.copies.isWhole) return become(next);
  if (next.points.count === next.copies.count) return cleanseNext(next, next.targets);
  return enter({ ...cleansingOf(next), kind: 'Listing', from: null });
}

function takeListed(state: Listing, { count, ids, next }: MessageOf<'idsRead'>): MigrationStep {
  if (count === 0) return listNext(state, next);
  return enter({ ...cleansingOf(state), kind: 'Checking', ids, next });
}

function takeChecked(state: Checking, { deletion }: MessageOf<'deletionMade'>): MigrationStep {
  if (deletion === null) return listNext(state, state.next);
  return enter({ ...cleansingOf(state), kind: 'Removing', deletion, next: state.next });
}

function takeRemoved(state: Removing): MigrationStep {
  return listNext(state, state.next);
}

function listNext(cleansing: Cleansing, from: PointId | null): MigrationStep {
  if (from === null) return cleanseNext(cleansing, cleansing.targets);
  return enter({ ...cleansingOf(cleansing), kind: 'Listing', from });
}

// ---------------------------------------------------------------- points that are another shard's

function takeSwept(state: Sweeping, { count, deletion, next }: MessageOf<'deletionMade'>): MigrationStep {
  const { removed } = state;
  if (deletion === null) return sweepNext(settledOf(state), removed, next);
  return enter({ ...settledOf(state), kind: 'Deleting', removed, deletion, count, next });
}

function takeDeleted(state: Deleting): MigrationStep {
  const { count, next, progress, removed } = state;
  const { effects, state: settled } = shown(settledOf(state), { sent: progress.sent + count });
  return sweepNext(settled, removed + count, next, ...effects);
}

function sweepNext(settled: Settled, removed: number, from: PointId | null, ...before: MigrationEffect[]): MigrationStep {
  if (from !== null) return enter({ ...settled, kind: 'Sweeping', removed, from }, ...before);
  const { effects, state } = removed === 0 ? finish(settled) : settle(settled);
  return { state, effects: [...before, ...effects] };
}

// ---------------------------------------------------------------- failures

function callAgain(state: Working, { error }: MessageOf<'failed'>): MigrationStep {
  if (!PASSING.has(error.code)) return beginAgain(state, { kind: 'failed', call: state.call, error });
  // An earlier process has led in the same term, and its calls had come further.
  return wait(error.reason === 'staleCopy' ? { ...state, sequence: state.sequence * 2 } : state);
}

function wait(next: Working): MigrationStep {
  return become<MigrationState, MigrationEffect>(waiting(next), { kind: 'retrySoon', call: next.call });
}

/** The stage from its beginning, after a pause; what is copied is not copied again. */
function beginAgain(state: Working, { error }: MessageOf<'failed'>): MigrationStep {
  const attempt = state.progress.failures + 1;
  const progress = { ...state.progress, failures: attempt, cause: error.detail };
  const text = `failed ${attempt} ${attempt === 1 ? 'time' : 'times'}: ${error.detail}`;
  return become<MigrationState, MigrationEffect>(
    waiting({ ...stageOf(state), progress, kind: 'Informing', informed: [] }),
    { kind: 'show', progress },
    { kind: 'log', level: 'warn', text },
    { kind: 'retryLater', call: state.call, attempt },
  );
}

function tryAgain({ next }: WaitingMigration): MigrationStep {
  return enter(next);
}

// ---------------------------------------------------------------- helpers

function isCleaning({ part }: MigrationStage): boolean {
  return part.migration.stage === 'cleaning';
}

function shown<State extends MigrationStage>(state: State, change: Partial<TransferProgress>): Step<State, MigrationEffect> {
  const progress = { ...state.progress, ...change };
  return { state: { ...state, progress }, effects: [{ kind: 'show', progress }] };
}
