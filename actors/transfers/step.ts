/**
 * What a node does about transfers and migrations at each look at the agreed state. No plan is kept: a start, or a new leader of a shard or of
 * consensus, goes on with what it sees.
 *
 * Its rules are Transfer-M5 to Transfer-M7, Transfer-M11, Transfer-M14 and Transfer-M15 in actors/README.md.
 */

import { migrationTasks } from '../../cluster/apply/migration.js';
import { type HandOverNeed, noteHandOverTry, rests, stillNeeded } from '../../cluster/plans/hand-over-tries.js';
import { type HandOver, isAtRest, planFull, planLeadership, planLeaving } from '../../cluster/plans/leadership.js';
import type { ClusterState } from '../../cluster/state/state.js';
import { askedComparisons, followReplicas, nextComparison } from '../../cluster/transfer/comparing.js';
import { planHealing } from '../../cluster/transfer/healing.js';
import { incomingFiles, runOutcomeOf, type TransferRun, wantedRuns } from '../../cluster/transfer/runs.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import { decide, type Of, type Table } from '../../protocols/machine.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { Sight, TransfersEffect, TransfersMessage, WhyHandedOver } from './messages.js';
import { RESTLESS, type Spreading, type TransfersSettings, type TransfersState, watching } from './state.js';

type TransfersStep = Step<TransfersState, TransfersEffect>;
type MessageOf<Kind extends TransfersMessage['kind']> = Of<TransfersMessage, Kind>;

/** Between two looks for a digest that is due, at most. */
const COMPARE_TICKS = 20;
/** After a lead could not be given back. */
const GIVE_BACK_TICKS = 5;
/** Between two hand-overs, at least. */
const SPREAD_TICKS = 5;
/** Most leads that go from full disks at a time: their shards take no writes meanwhile. */
const FULL_AT_ONCE = 16;

export function startTransfers(settings: TransfersSettings): TransfersStep {
  return become<TransfersState, TransfersEffect>(watching(settings), { kind: 'tickLater' });
}

/** It has one state: what it does about each message. */
export const TRANSFERS_TABLE: Table<TransfersState, TransfersMessage, TransfersStep> = {
  Watching: {
    tick: lookAgain,
    saw: look,
    proposed: noteProposed,
    comparisonEnded: noteCompared,
    handedOver: noteHandedOver,
    gaveBack: noteGivenBack,
    childGaveUp: endFailed,
  },
};

export function stepTransfers(state: TransfersState, message: TransfersMessage): TransfersStep {
  return decide(TRANSFERS_TABLE, state, message);
}

function lookAgain(state: TransfersState): TransfersStep {
  return become<TransfersState, TransfersEffect>(state, { kind: 'look' }, { kind: 'tickLater' });
}

function noteProposed(state: TransfersState): TransfersStep {
  return become({ ...state, proposing: false });
}

function noteCompared(state: TransfersState, ended: MessageOf<'comparisonEnded'>): TransfersStep {
  const compared = new Map(state.compared).set(ended.comparison.name, state.ticks);
  return become<TransfersState, TransfersEffect>({ ...state, compared, comparison: null }, { kind: 'count', ended });
}

function noteHandedOver(state: TransfersState, { error, handOver, why }: MessageOf<'handedOver'>): TransfersStep {
  const { spreading } = state;
  // Where one fails, so may the next: it is time to rest.
  const restedTicks = error === null ? spreading.restedTicks : 0;
  const { handOverTries: tries, ticks } = state;
  const handOverTries = why === 'spread' ? tries : noteHandOverTry(tries, why, handOver, error !== null, ticks);
  return become<TransfersState, TransfersEffect>(
    { ...state, handOverTries, spreading: { ...spreading, restedTicks, underWay: spreading.underWay - 1 } },
    { kind: 'countHandOver', handOver, why, error },
  );
}

function noteGivenBack(state: TransfersState, { error, lead }: MessageOf<'gaveBack'>): TransfersStep {
  const giveBackTick = state.ticks + (error === null ? 0 : GIVE_BACK_TICKS);
  return become<TransfersState, TransfersEffect>({ ...state, giveBackTick }, { kind: 'tellGivenBack', lead, error });
}

function look(before: TransfersState, { sight }: MessageOf<'saw'>): TransfersStep {
  const effects: TransfersEffect[] = [];
  const state = { ...before, ticks: before.ticks + 1 };
  const { agreed } = sight;
  if (agreed === null) {
    const runs = withRuns(state.runs, new Map(), null, effects);
    return become({ ...state, runs, migrations: withMigrations(state.migrations, new Map(), effects) }, ...effects);
  }
  const runs = withRuns(state.runs, wantedRuns(agreed, sight.self), agreed, effects);
  const migrations = withMigrations(state.migrations, migrationTasks(agreed, sight.self), effects);
  const incoming = withIncoming(state.incoming, incomingFiles(agreed, sight.self), effects);
  const healed = heal(giveBack({ ...state, runs, migrations, incoming }, sight, effects), sight, agreed, effects);
  return become(spread(compare(healed, sight, agreed, effects), sight, agreed, effects), ...effects);
}

/** Ends what is wanted no more before it begins what is new: a restarted transfer has one run. */
function withRuns(
  runs: TransfersState['runs'],
  wanted: ReadonlyMap<string, TransferRun>,
  agreed: ClusterState | null,
  effects: TransfersEffect[],
): TransfersState['runs'] {
  for (const [name, run] of runs) {
    if (wanted.has(name)) continue;
    const outcome = agreed === null ? 'left' : runOutcomeOf(agreed, run);
    // Transfer-M2: only where it is agreed that the target is not Active. Another term has a leader that knows nothing of it.
    const release = outcome === 'aborted' || outcome === 'restarted';
    effects.push({ kind: 'stopRun', name, run, outcome, release });
  }
  const next = new Map<string, TransferRun>();
  for (const [name, run] of wanted) {
    const known = runs.get(name);
    next.set(name, known ?? run);
    if (known === undefined) effects.push({ kind: 'startRun', name, run });
  }
  return next;
}

function withMigrations(
  known: TransfersState['migrations'],
  wanted: TransfersState['migrations'],
  effects: TransfersEffect[],
): TransfersState['migrations'] {
  for (const [name, task] of known) if (!wanted.has(name)) effects.push({ kind: 'stopMigration', task, error: null });
  for (const [name, task] of wanted) if (!known.has(name)) effects.push({ kind: 'startMigration', task });
  return wanted;
}

function withIncoming(
  known: TransfersState['incoming'],
  incoming: TransfersState['incoming'],
  effects: TransfersEffect[],
): TransfersState['incoming'] {
  for (const [name, files] of known) if (!incoming.has(name)) effects.push({ kind: 'discardFiles', files });
  return incoming;
}

/** Gives back one lead at a time, each in its turn. */
function giveBack(state: TransfersState, { givingBack, reachable }: Sight, effects: TransfersEffect[]): TransfersState {
  if (state.giveBackTick === null || state.ticks < state.giveBackTick) return state;
  const leads = givingBack.filter(({ to }) => reachable.has(to));
  const lead = leads[state.ticks % leads.length];
  if (lead === undefined) return state;
  effects.push({ kind: 'giveBack', lead });
  return { ...state, giveBackTick: null };
}

function heal(state: TransfersState, sight: Sight, agreed: ClusterState, effects: TransfersEffect[]): TransfersState {
  // What an earlier leader tried is not known here: its replicas are due at once.
  if (!sight.leads) return state.tries.size === 0 ? state : { ...state, tries: new Map() };
  if (state.proposing) return state;
  const { operations, tries } = planHealing(agreed, sight, state.settings.limits, state.tries, state.ticks);
  if (operations.length === 0) return { ...state, tries };
  effects.push({ kind: 'propose', operations });
  return { ...state, tries, proposing: true };
}

function compare(before: TransfersState, sight: Sight, agreed: ClusterState, effects: TransfersEffect[]): TransfersState {
  const { reachable, self } = sight;
  const state = compareAsked(before, sight, agreed, effects);
  const { comparePeriodTicks } = state.settings;
  if (comparePeriodTicks === 0 || state.ticks % compareTicks(comparePeriodTicks) !== 0) return state;
  const compared = followReplicas(agreed, self, state.compared, state.ticks);
  const due = state.comparison === null ? nextComparison(agreed, self, compared, comparePeriodTicks, state.ticks) : null;
  if (due === null || !reachable.has(due.peerId)) return { ...state, compared };
  effects.push({ kind: 'compare', comparison: due });
  return { ...state, compared, comparison: due };
}

/** Transfer-M14: those that somebody asked for go before those that are due. */
function compareAsked(state: TransfersState, { asked, self }: Sight, agreed: ClusterState, effects: TransfersEffect[]): TransfersState {
  if (state.comparison !== null) return state;
  const { next, over } = askedComparisons(agreed, self, asked);
  if (over.length > 0) effects.push({ kind: 'forgetAsked', names: over });
  if (next === null) return state;
  effects.push({ kind: 'compare', comparison: next });
  return { ...state, comparison: next };
}

function spread(
  before: TransfersState,
  { full, leads, reachable }: Sight,
  agreed: ClusterState,
  effects: TransfersEffect[],
): TransfersState {
  const hasNeed = (need: HandOverNeed, from: PeerId) => (need === 'full' ? full.has(from) : agreed.marks.get(from)?.leaving === 'drain');
  const handOverTries = stillNeeded(before.handOverTries, hasNeed);
  const state = handOverTries === before.handOverTries ? before : { ...before, handOverTries };
  const { settings, spreading } = state;
  if (spreading.underWay > 0) return state;
  const isReachable = (peerId: PeerId) => reachable.has(peerId);
  const isFull = (peerId: PeerId) => full.has(peerId);
  const isDue = state.ticks % SPREAD_TICKS === 0;
  if (leads && isDue) {
    const isResting = (need: HandOverNeed) => (handOver: HandOver) => rests(handOverTries, need, handOver, state.ticks);
    const leaving = planLeaving(agreed, isReachable, isFull, isResting('leaving'));
    if (leaving !== null) return handOver({ ...state, spreading: RESTLESS }, 'leaving', [leaving], effects);
    const fromFull = full.size === 0 ? [] : planFull(agreed, isReachable, isFull, FULL_AT_ONCE, isResting('full'));
    if (fromFull.length > 0) return handOver({ ...state, spreading: RESTLESS }, 'full', fromFull, effects);
  }
  if (settings.restTicks === 0) return state;
  if (!leads || !isAtRest(agreed)) return spreading === RESTLESS ? state : { ...state, spreading: RESTLESS };
  const rested: Spreading = { ...spreading, restedTicks: spreading.restedTicks + 1 };
  const seen: NonNullable<Spreading['spreadWith']> = { collections: agreed.collections, reachable: reachable.size, full: full.size };
  if (isSameSeen(rested.spreadWith, seen) || rested.restedTicks < settings.restTicks || !isDue) return { ...state, spreading: rested };
  const spreads = planLeadership(agreed, isReachable, isFull);
  if (spreads === null) return { ...state, spreading: { ...rested, spreadWith: seen } };
  return handOver({ ...state, spreading: rested }, 'spread', [spreads], effects);
}

function handOver(state: TransfersState, why: WhyHandedOver, handOvers: readonly HandOver[], effects: TransfersEffect[]): TransfersState {
  for (const each of handOvers) effects.push({ kind: 'handOver', handOver: each, why });
  return { ...state, spreading: { ...state.spreading, underWay: handOvers.length } };
}

function isSameSeen(one: Spreading['spreadWith'], other: NonNullable<Spreading['spreadWith']>): boolean {
  return one?.collections === other.collections && one.reachable === other.reachable && one.full === other.full;
}

/** All replicas of all shards are gone through, which is not worth it at each look. */
function compareTicks(periodTicks: number): number {
  return Math.max(1, Math.min(COMPARE_TICKS, Math.floor(periodTicks / 100)));
}

/** A migration may be half done: the next look begins it again. */
function endFailed(state: TransfersState, { error, name }: MessageOf<'childGaveUp'>): TransfersStep {
  const run = state.runs.get(name);
  if (run !== undefined) return abortRun(state, run, name, error);
  const task = state.migrations.get(name);
  if (task === undefined) return become(state);
  const migrations = new Map(state.migrations);
  migrations.delete(name);
  return become<TransfersState, TransfersEffect>({ ...state, migrations }, { kind: 'stopMigration', task, error });
}

/** A transfer that nobody carries out would stand for ever. */
function abortRun(state: TransfersState, run: TransferRun, name: string, error: ErrorFacts): TransfersStep {
  const { collection, term, transfer } = run;
  const { from, shardId, to, toShardId } = transfer;
  const operation = {
    kind: 'abortTransfer',
    collection,
    transfer: { shardId, from, to, toShardId },
    reason: `its actor crashed again and again: ${error.detail}`,
    term,
  } as const;
  // Where that is not agreed, the next look begins it anew.
  const runs = new Map(state.runs);
  runs.delete(name);
  return become<TransfersState, TransfersEffect>(
    { ...state, runs, proposing: true },
    { kind: 'stopRun', name, run, outcome: 'aborted', release: false },
    { kind: 'propose', operations: [operation] },
  );
}
