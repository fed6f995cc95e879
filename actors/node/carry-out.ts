/**
 * Makes a node's collections what its cluster desires. Each look at a folder compares both and begins a move; every result of a move leads
 * to the next look at its folder. Nothing is remembered that a crash could lose: a new start looks at everything.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import type { Desired } from '../context/desired.js';
import { type Step, unreachable } from '../runtime/behaviour.js';
import { ALIASES, carriedOut, type RunningMove, sameAliases, sameFailures, sameWanted, type Trouble } from './cluster-work.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import { type Fault, faultOfReplicas, type Move, reconcile, wantedByFolder } from './reconcile.js';
import { NO_CALLER, type NodeState } from './state.js';
import { type InCluster, WorkDraft } from './work-draft.js';

type NodeStep = Step<NodeState, NodeEffect>;

export function inCluster(state: NodeState): state is InCluster {
  return (state.kind === 'Starting' || state.kind === 'Active') && state.cluster !== null;
}

/** Takes over a new desired state; what is owed since earlier ones stays owed. */
export function desire(state: InCluster, desired: Desired): NodeStep {
  const draft = new WorkDraft(state);
  const before = draft.work;
  const { changed, wanted } = wantedByFolder(desired, before);
  // Consensus asks again for an index that was reported only after it has read its log again and knows nothing of the report.
  const told = before.told !== null && before.told.index >= desired.index ? null : before.told;
  draft.change({ desired, wanted, told });
  const since = before.desired === null ? 0 : before.desired.index + 1;
  // While collections here may be of later entries than the desired state, a higher index alone changes what there is to do.
  const isBehind = before.desired === null || before.desired.index < before.latest;
  for (const folder of isBehind ? new Set([...changed, ...wanted.keys(), ...state.collections.folders()]) : changed) {
    const isNew = before.desired === null || !sameWanted(before.wanted.get(folder) ?? null, wanted.get(folder) ?? null);
    if (isNew) {
      if (!before.owed.has(folder)) draft.set('owed', folder, since);
      // What failed for the state before is tried at once. Until then it is as it was: what was reported must not look mended.
      endWait(draft, folder, { attempts: 0 });
    }
    if (isNew || isBehind) lookAtFolder(draft, folder);
  }
  if (!draft.work.owed.has(ALIASES)) draft.set('owed', ALIASES, since);
  return draft;
}

/** A failure is tried again at the next look at its folder. */
function endWait(draft: WorkDraft, folder: string, changed: Partial<Trouble>): void {
  const trouble = draft.work.troubles.get(folder);
  if (trouble !== undefined) draft.set('troubles', folder, { ...trouble, ...changed, waits: false });
}

/** Continues after each message: takes the result of a move, looks at its folder again, and reports progress. */
export function carryOn(step: NodeStep, message: NodeMessage): NodeStep {
  if (!inCluster(step.state)) return step;
  const draft = new WorkDraft(step.state);
  settle(draft, message);
  adoptAll(draft);
  if ('folder' in message && message.folder !== ALIASES) lookAtFolder(draft, message.folder);
  lookAtAliases(draft);
  tell(draft, message.kind === 'tellNow');
  return { state: draft.state, effects: [...step.effects, ...draft.effects] };
}

/** Tries a failed folder again, after its pause. */
export function retry(state: InCluster, folder: string): NodeStep {
  const draft = new WorkDraft(state);
  endWait(draft, folder, {});
  return draft;
}

/** Messages with the result of a folder's move. */
type MoveNews = Of<
  NodeMessage,
  | 'collectionOpened'
  | 'collectionDied'
  | 'collectionGaveUp'
  | 'collectionClosed'
  | 'collectionDeleted'
  | 'createFailed'
  | 'reshaped'
  | 'reshapeFailed'
  | 'takenAway'
  | 'takeAwayFailed'
>;

interface MoveUnderWay {
  readonly draft: WorkDraft;
  readonly move: RunningMove;
}

const MOVE_NEWS: Row<MoveNews, MoveUnderWay, void> = {
  collectionOpened: settleOpened,
  collectionDied: settleDied,
  collectionGaveUp: settleGaveUp,
  collectionClosed: settleClosed,
  collectionDeleted: settleDone,
  createFailed: settleFailed,
  reshaped: settleDone,
  reshapeFailed: settleFailed,
  takenAway: settleDone,
  takeAwayFailed: settleFailed,
};

/** Takes the result of the move in the message's folder. */
function settle(draft: WorkDraft, message: NodeMessage): void {
  if (message.kind === 'aliasesNotSaved') fail(draft, ALIASES, message.error);
  if (!isMoveNews(message)) return;
  const move = draft.work.running.get(message.folder);
  if (move !== undefined) decideInRow(MOVE_NEWS, { draft, move }, message);
  else if (message.kind === 'collectionDeleted') draft.set('holdings', message.folder, null);
}

function isMoveNews(message: NodeMessage): message is MoveNews {
  return message.kind in MOVE_NEWS;
}

function settleOpened({ draft, move }: MoveUnderWay, { folder }: MoveNews): void {
  if (move.kind === 'create') noteDone(draft, folder, move);
  // The restarted actor does not know of its deletion.
  else if (move.kind === 'delete') draft.emit({ kind: 'deleteCollection', folder, replyTo: null });
  else if (move.kind === 'setAside') draft.emit({ kind: 'retireCollection', folder });
}

function settleDied({ draft, move }: MoveUnderWay, { error, folder }: Of<MoveNews, 'collectionDied'>): void {
  // The new collection exists, and its replicas are tried again.
  if (move.kind === 'create') noteDone(draft, folder, move);
  else if (!isChange(move)) noteFailed(draft, folder, move, error);
}

function settleGaveUp({ draft, move }: MoveUnderWay, { error, folder }: Of<MoveNews, 'collectionGaveUp'>): void {
  // The new collection exists, as one whose actor has been stopped.
  if (move.kind === 'create') noteDone(draft, folder, move);
  else if (!isChange(move)) noteFailed(draft, folder, move, error);
}

function settleClosed({ draft, move }: MoveUnderWay, { folder }: MoveNews): void {
  if (move.kind === 'setAside') takeAway(draft, folder, move);
}

function settleDone({ draft, move }: MoveUnderWay, { folder }: MoveNews): void {
  noteDone(draft, folder, move);
}

function settleFailed(
  { draft, move }: MoveUnderWay,
  { error, folder }: Of<MoveNews, 'createFailed' | 'reshapeFailed' | 'takeAwayFailed'>,
): void {
  noteFailed(draft, folder, move, error);
}

/** Whether the move changes a collection that exists and stays: its actor continues the change after a crash. */
function isChange({ kind }: RunningMove): boolean {
  return kind === 'reshape' || kind === 'adopt';
}

function noteDone(draft: WorkDraft, folder: string, move: RunningMove): void {
  draft.set('running', folder, null);
  draft.set('troubles', folder, null);
  draft.set('holdings', folder, move.holding);
  // The deletion may make room for a desired collection, which is still owed.
  if (draft.work.owed.has(folder) && move.holding !== null) draft.set('owed', folder, move.index + 1);
  const { adopting } = draft.work;
  if (adopting === null || adopting.left === null || !adopting.left.has(folder)) return;
  const left = new Set([...adopting.left].filter((other) => other !== folder));
  draft.change({ adopting: left.size === 0 ? null : { ...adopting, left } });
  if (left.size === 0) draft.emit({ kind: 'reply', replyTo: adopting.replyTo, answer: true });
}

function noteFailed(draft: WorkDraft, folder: string, move: RunningMove, error: ErrorFacts): void {
  draft.set('running', folder, null);
  if (move.kind === 'adopt') refuseAdopting(draft, error);
  else {
    draft.set('owed', folder, null);
    fail(draft, folder, error);
  }
}

/** Notes a failure and sets a time to try again; another desired state ends the wait. */
function fail(draft: WorkDraft, folder: string, error: ErrorFacts): void {
  const attempts = (draft.work.troubles.get(folder)?.attempts ?? 0) + 1;
  draft.set('troubles', folder, { detail: error.detail, attempts, of: 'collection', waits: true });
  draft.emit({ kind: 'retryLater', folder, attempt: attempts });
}

/** Begins to adopt collections into a new cluster, once all of them are open or have failed to open. */
function adoptAll(draft: WorkDraft): void {
  const { adopting, holdings, running } = draft.work;
  if (adopting === null || adopting.left !== null || draft.state.kind === 'Starting') return;
  const moves: [string, RunningMove][] = [];
  for (const [folder, belonging] of adopting.adoption) {
    const holding = holdings.get(folder);
    if (holding === undefined || running.has(folder) || draft.state.collections.get(folder)?.kind === 'Deleting') {
      refuseAdopting(draft, { code: 'unavailable', detail: `the collection in ${folder} is being changed`, retryAfterMs: 1000 });
      return;
    }
    moves.push([folder, { kind: 'adopt', index: belonging.index, holding: { ...holding, belonging }, reason: '' }]);
  }
  for (const [folder, move] of moves) {
    const belonging = adopting.adoption.get(folder);
    draft.set('running', folder, move);
    if (belonging !== undefined && move.holding !== null)
      draft.emit({ kind: 'reshapeCollection', folder, config: move.holding.config, belonging });
  }
  draft.change({ adopting: moves.length === 0 ? null : { ...adopting, left: new Set(moves.map(([folder]) => folder)) } });
  if (moves.length === 0) draft.emit({ kind: 'reply', replyTo: adopting.replyTo, answer: true });
}

function refuseAdopting(draft: WorkDraft, error: ErrorFacts): void {
  const { adopting } = draft.work;
  if (adopting === null) return;
  draft.change({ adopting: null });
  draft.emit({ kind: 'refuse', replyTo: adopting.replyTo, error });
}

function lookAtFolder(draft: WorkDraft, folder: string): void {
  const { desired, holdings, running, troubles, wanted } = draft.work;
  if (desired === null || running.has(folder)) return;
  const phase = draft.state.collections.get(folder);
  const there = phase === undefined ? null : { phase, holding: holdings.get(folder) ?? null };
  const finding = reconcile(there, wanted.get(folder) ?? null, desired);
  switch (finding.kind) {
    case 'wait':
      break;
    case 'done':
      draft.set('owed', folder, null);
      draft.set('troubles', folder, null);
      break;
    case 'fault':
      draft.set('owed', folder, null);
      noteFault(draft, folder, finding, 0);
      break;
    case 'move':
      if (troubles.get(folder)?.waits !== true) begin(draft, folder, finding.move, desired);
      break;
    default:
      unreachable(finding);
  }
}

function begin(draft: WorkDraft, folder: string, move: Move, { index }: Desired): void {
  const isAbandoned = draft.state.collections.get(folder)?.kind === 'Abandoned';
  switch (move.kind) {
    case 'create': {
      const { name, create } = move;
      draft.set('running', folder, { kind: 'create', index, holding: { name, ...create }, reason: '' });
      draft.setPhase(folder, { kind: 'Creating', replyTo: NO_CALLER });
      draft.emit({ kind: 'createCollection', name, folder, create });
      break;
    }
    case 'reshape': {
      const { belonging, config } = move;
      const name = draft.work.holdings.get(folder)?.name ?? folder;
      draft.set('running', folder, { kind: 'reshape', index, holding: { name, belonging, config }, reason: '' });
      keepFault(draft, folder);
      draft.emit({ kind: 'reshapeCollection', folder, config, belonging });
      break;
    }
    case 'delete':
    case 'setAside': {
      const going: RunningMove = { kind: move.kind, index, holding: null, reason: move.kind === 'setAside' ? move.reason : '' };
      draft.set('running', folder, going);
      if (isAbandoned) takeAway(draft, folder, going);
      else {
        draft.setPhase(folder, { kind: 'Deleting' });
        draft.emit(move.kind === 'setAside' ? { kind: 'retireCollection', folder } : { kind: 'deleteCollection', folder, replyTo: null });
      }
      break;
    }
    default:
      unreachable(move);
  }
}

/** Replicas that do not serve are failures while their collection is changed, too: each report says what was reached up to its index. */
function keepFault(draft: WorkDraft, folder: string): void {
  const phase = draft.state.collections.get(folder);
  const fault = phase === undefined ? null : faultOfReplicas(phase);
  if (fault !== null) noteFault(draft, folder, fault, draft.work.troubles.get(folder)?.attempts ?? 0);
}

function noteFault(draft: WorkDraft, folder: string, { detail, of }: Fault, attempts: number): void {
  draft.set('troubles', folder, { detail, attempts, of, waits: false });
}

/** Removes the files of a collection whose actor has ended. */
function takeAway(draft: WorkDraft, folder: string, { kind, reason }: RunningMove): void {
  draft.setPhase(folder, { kind: 'Deleting' });
  draft.emit({ kind: 'takeAway', folder, keep: kind === 'setAside', reason });
}

/** Saves the desired aliases, one change after the other; a change that cannot be saved stays owed. */
function lookAtAliases(draft: WorkDraft): void {
  const { desired, owed, troubles } = draft.work;
  const { aliases } = draft.state;
  if (desired === null || !owed.has(ALIASES) || aliases.changes.length > 0 || troubles.get(ALIASES)?.waits === true) return;
  if (sameAliases(aliases.known, desired.aliases)) {
    draft.set('owed', ALIASES, null);
    draft.set('troubles', ALIASES, null);
    return;
  }
  const wanted = desired.aliases;
  const changes = [{ kind: 'replace', aliases: wanted, replyTo: NO_CALLER } as const];
  draft.replace({ ...draft.state, aliases: { ...aliases, saving: wanted, changes } });
  draft.emit({ kind: 'saveAliases', aliases: wanted });
}

/**
 * Reports progress to consensus: at once when more is executed, and after a short delay when only failures come and go, as they do by the
 * hundreds while collections are opened.
 */
function tell(draft: WorkDraft, isTime: boolean): void {
  const { desired, owed, told, toldTroubles, troubles } = draft.work;
  if (desired === null) return;
  if (isTime) draft.change({ tellsLater: false });
  let index = desired.index;
  for (const from of owed.values()) index = Math.min(index, from - 1);
  if (index < 0) return;
  if (told === null || index > told.index || (isTime && troubles !== toldTroubles)) {
    const said = carriedOut(draft.work, Math.max(index, told?.index ?? 0));
    const isNews = told === null || said.index > told.index || !sameFailures(told, said);
    draft.change({ told: said, toldTroubles: troubles });
    if (isNews) draft.emit({ kind: 'tellCarriedOut', carriedOut: said });
  } else if (troubles !== toldTroubles && !draft.work.tellsLater) {
    draft.change({ tellsLater: true });
    draft.emit({ kind: 'tellLater' });
  }
}
