/** The decisions of the node: one function for each move of its table (`step.ts`). */

import { aliasExists, collectionExists } from '../../cluster/apply/aliases.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { Of } from '../../protocols/machine.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { become, type ReplyTo, type Step, unreachable } from '../runtime/behaviour.js';
import { type AliasChange, aliasesOfFolder, changedAliases, NO_ALIASES } from './aliases.js';
import { desire, inCluster, retry } from './carry-out.js';
import { clusterWork } from './cluster-work.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import {
  type ActiveNode,
  activeNode,
  type CollectionPhase,
  failed,
  type NodeState,
  type ScanningNode,
  type StartingNode,
  type StoppingNode,
  startingNode,
  stopping,
  withoutPhase,
  withPhase,
} from './state.js';
import type { InCluster } from './work-draft.js';

export type NodeStep = Step<NodeState, NodeEffect>;
type WithCollections = StartingNode | ActiveNode | StoppingNode;
export type Serving = StartingNode | ActiveNode;
type MessageOf<Kind extends NodeMessage['kind']> = Of<NodeMessage, Kind>;

export function openAll(state: ScanningNode, { aliases, folders, holdings }: MessageOf<'scanned'>): NodeStep {
  const phases = folders.map((folder): [string, CollectionPhase] => [folder, { kind: 'Opening' }]);
  const loads = folders.map((folder): NodeEffect => ({ kind: 'loadCollection', folder }));
  const cluster = holdings === null ? null : clusterWork(holdings);
  const local = { collections: [...(holdings?.values() ?? [])], aliases };
  const consensus: NodeEffect[] = holdings === null ? [] : [{ kind: 'startConsensus', local }];
  return maybeReady(startingNode(phases, state.waiting, { ...NO_ALIASES, known: aliases }, cluster), [
    { kind: 'announceAliases', aliases },
    ...loads,
    ...consensus,
  ]);
}

/** Begins an adoption. There is one at a time; consensus asks again. */
export function adopt(state: Serving, { adoption, replyTo }: MessageOf<'adopt'>): NodeStep {
  if (!inCluster(state) || state.cluster.adopting !== null) {
    const error: ErrorFacts = {
      code: 'unavailable',
      detail: 'the collections of this node are being added to its new cluster: retry',
      retryAfterMs: 1000,
    };
    return become<NodeState, NodeEffect>(state, { kind: 'refuse', replyTo, error });
  }
  const byFolder = new Map([...adoption].map(([name, belonging]) => [folderName(name), belonging]));
  const next: InCluster = { ...state, cluster: { ...state.cluster, adopting: { adoption: byFolder, replyTo, left: null } } };
  return become(next);
}

export function becomeFailed(state: ScanningNode, { error }: MessageOf<'scanFailed'>): NodeStep {
  const refused = state.waiting.map((replyTo): NodeEffect => ({ kind: 'refuse', replyTo, error }));
  return become<NodeState, NodeEffect>(failed(error), ...refused);
}

export function waitForReady(state: ScanningNode | StartingNode, { replyTo }: MessageOf<'awaitReady'>): NodeStep {
  return become<NodeState, NodeEffect>({ ...state, waiting: [...state.waiting, replyTo] });
}

export function createIfNew(state: Serving, message: MessageOf<'create'>): NodeStep {
  const { config, folder, name, replyTo } = message;
  const phase = state.collections.get(folder);
  if (phase?.kind === 'Deleting' || phase?.kind === 'Creating') {
    const detail = `Collection \`${name}\` is being ${phase.kind === 'Deleting' ? 'deleted' : 'created'}`;
    return become<NodeState, NodeEffect>(state, { kind: 'refuse', replyTo, error: { code: 'conflict', detail } });
  }
  if (phase !== undefined) {
    return become<NodeState, NodeEffect>(state, {
      kind: 'refuse',
      replyTo,
      error: collectionExists(name),
    });
  }
  const { known, saving } = state.aliases;
  if (known.has(name) || saving?.has(name) === true) {
    return become<NodeState, NodeEffect>(state, { kind: 'refuse', replyTo, error: aliasExists(name) });
  }
  const next = withPhase(state, folder, { kind: 'Creating', replyTo });
  return become<NodeState, NodeEffect>(next, { kind: 'createCollection', name, folder, create: { config, belonging: null } });
}

/** Deletes a collection. Its aliases are removed first, after the changes that were asked for before. */
export function deleteWithAliases(state: Serving, { folder, replyTo }: MessageOf<'delete'>): NodeStep {
  const { changes, known } = state.aliases;
  if (changes.length > 0 || aliasesOfFolder(known, folder).length > 0) return addAliasChange(state, { kind: 'forget', folder, replyTo });
  const begun = beginDeleting(state, folder, replyTo);
  return maybeReady(begun.state, begun.effects);
}

function beginDeleting(state: Serving, folder: string, replyTo: ReplyTo<boolean>): { state: Serving; effects: NodeEffect[] } {
  const phase = state.collections.get(folder);
  // To the caller, a collection that is being made or deleted does not exist.
  if (phase === undefined || phase.kind === 'Deleting' || phase.kind === 'Creating') {
    return { state, effects: [{ kind: 'reply', replyTo, answer: false }] };
  }
  if (phase.kind === 'Abandoned') return { state: withoutPhase(state, folder), effects: [{ kind: 'removeFiles', folder, replyTo }] };
  return { state: withPhase(state, folder, { kind: 'Deleting' }), effects: [{ kind: 'deleteCollection', folder, replyTo }] };
}

/** Queues a change of aliases. Changes are saved one after the other, each based on the one before. */
export function queueAliasChange(state: Serving, { actions, replyTo }: MessageOf<'changeAliases'>): NodeStep {
  return addAliasChange(state, { kind: 'actions', actions, replyTo });
}

function addAliasChange(state: Serving, change: AliasChange): NodeStep {
  const { changes } = state.aliases;
  const next = { ...state, aliases: { ...state.aliases, changes: [...changes, change] } };
  return changes.length > 0 ? become<NodeState, NodeEffect>(next) : saveNextAliases(next, []);
}

/** Saves the first queued change that has an effect, and answers those before it. */
function saveNextAliases(state: Serving, effects: readonly NodeEffect[]): NodeStep {
  let next = state;
  const all = [...effects];
  for (const change of state.aliases.changes) {
    const { known, changes } = next.aliases;
    const made = changedAliases(known, change, next.collections);
    if (!('error' in made) && made !== known) {
      all.push({ kind: 'saveAliases', aliases: made });
      return maybeReady({ ...next, aliases: { ...next.aliases, saving: made } }, all);
    }
    next = { ...next, aliases: { ...next.aliases, changes: changes.slice(1) } };
    if ('error' in made) all.push({ kind: 'refuse', replyTo: change.replyTo, error: made.error });
    else {
      const finished = finishAliasChange(next, change);
      next = finished.state;
      all.push(...finished.effects);
    }
  }
  return maybeReady(next, all);
}

export function takeAliases(state: Serving): NodeStep {
  const { changes, saving } = state.aliases;
  const [change, ...rest] = changes;
  if (change === undefined || saving === null) return become(state);
  const finished = finishAliasChange({ ...state, aliases: { known: saving, saving: null, changes: rest } }, change);
  return saveNextAliases(finished.state, [{ kind: 'announceAliases', aliases: saving }, ...finished.effects]);
}

function finishAliasChange(state: Serving, change: AliasChange): { state: Serving; effects: NodeEffect[] } {
  if (change.kind === 'forget') return beginDeleting(state, change.folder, change.replyTo);
  return { state, effects: [{ kind: 'reply', replyTo: change.replyTo, answer: true }] };
}

export function dropAliasChange(state: Serving, { error }: MessageOf<'aliasesNotSaved'>): NodeStep {
  const [change, ...rest] = state.aliases.changes;
  if (change === undefined) return become(state);
  const next = { ...state, aliases: { ...state.aliases, saving: null, changes: rest } };
  return saveNextAliases(next, [{ kind: 'refuse', replyTo: change.replyTo, error }]);
}

/** Ends the last change of a stopping node; later ones were refused. */
export function endAliasChange(state: StoppingNode, message: MessageOf<'aliasesSaved' | 'aliasesNotSaved'>): NodeStep {
  const next = { ...state, aliases: NO_ALIASES };
  return maybeReady(
    next,
    state.aliases.changes.map(({ kind, replyTo }): NodeEffect => {
      if ('error' in message) return { kind: 'refuse', replyTo, error: message.error };
      return kind === 'forget' ? { kind: 'refuse', replyTo, error: going() } : { kind: 'reply', replyTo, answer: true };
    }),
  );
}

export function noteOpened(state: WithCollections, { folder }: MessageOf<'collectionOpened'>): NodeStep {
  const phase = state.collections.get(folder);
  if (phase === undefined || phase.kind === 'Deleting') return become(state);
  const answered: NodeEffect[] = phase.kind === 'Creating' ? [{ kind: 'reply', replyTo: phase.replyTo, answer: true }] : [];
  return maybeReady(withPhase(state, folder, { kind: 'Active' }), [{ kind: 'list', folder }, ...answered]);
}

export function noteDied(state: Serving, message: MessageOf<'collectionDied'>): NodeStep {
  const phase = state.collections.get(message.folder);
  if (phase === undefined) return become(state);
  // In a cluster it stays, and is seen: its files may have been lost, which the others learn from the replicas that do not serve (Node-N8).
  if (phase.kind === 'Creating' && !inCluster(state)) {
    // The files of a collection that never served are removed.
    return become<NodeState, NodeEffect>(
      withPhase(state, message.folder, { kind: 'Deleting' }),
      { kind: 'refuse', replyTo: phase.replyTo, error: message.error },
      { kind: 'deleteCollection', folder: message.folder, replyTo: null },
    );
  }
  const { error, folder, shards } = message;
  return maybeReady(withPhase(state, folder, { kind: 'Dead', error, shards }), [{ kind: 'list', folder }]);
}

export function noteGone(
  state: WithCollections,
  message: MessageOf<'createFailed' | 'collectionDeleted' | 'collectionClosed' | 'collectionGaveUp' | 'takenAway' | 'takeAwayFailed'>,
): NodeStep {
  const phase = state.collections.get(message.folder);
  const error: ErrorFacts = 'error' in message ? message.error : refusal(state);
  const refused: NodeEffect[] = phase?.kind === 'Creating' ? [{ kind: 'refuse', replyTo: phase.replyTo, error }] : [];
  return maybeReady(withoutPhase(state, message.folder), refused);
}

export function noteAbandoned(state: Serving, message: MessageOf<'collectionGaveUp'>): NodeStep {
  const { error, folder } = message;
  const phase = state.collections.get(folder);
  const refused: NodeEffect[] = phase?.kind === 'Creating' ? [{ kind: 'refuse', replyTo: phase.replyTo, error }] : [];
  return maybeReady(withPhase(state, folder, { kind: 'Abandoned' }), [...refused, { kind: 'abandonCollection', folder, error }]);
}

export function close(state: Serving, { replyTo }: MessageOf<'close'>): NodeStep {
  const unserved: NodeEffect[] =
    state.kind === 'Starting' ? state.waiting.map((waiting): NodeEffect => ({ kind: 'refuse', replyTo: waiting, error: going() })) : [];
  const withActor = [...state.collections].filter(([, phase]) => phase.kind !== 'Abandoned');
  const closes = withActor.map(([folder]): NodeEffect => ({ kind: 'closeCollection', folder }));
  const [saved, ...waiting] = state.aliases.changes;
  const refused = waiting.map((change): NodeEffect => ({ kind: 'refuse', replyTo: change.replyTo, error: going() }));
  const aliases = { ...state.aliases, changes: saved === undefined ? [] : [saved] };
  return maybeReady(stopping(withActor, replyTo, aliases), [...unserved, ...refused, ...closes]);
}

/**
 * While the node stops: a deletion that failed, or whose actor has begun a new life, has heard nothing of the end, and closes as it is. The files
 * that are left are deleted after the next start.
 */
export function closeUndeleted(state: StoppingNode, message: MessageOf<'collectionDied' | 'collectionOpened'>): NodeStep {
  const { folder, kind } = message;
  if (state.collections.get(folder)?.kind === 'Deleting') return become<NodeState, NodeEffect>(state, { kind: 'closeCollection', folder });
  return kind === 'collectionOpened' ? noteOpened(state, message) : become(state);
}

/** Stops a node that has nothing to close. */
export function closeNow(_state: NodeState, { replyTo }: MessageOf<'close'>): NodeStep {
  return become<NodeState, NodeEffect>(stopping([], replyTo), { kind: 'reply', replyTo, answer: true });
}

export function noteTakenAway(state: Serving, { folder }: MessageOf<'takenAway'>): NodeStep {
  return maybeReady(withoutPhase(state, folder), []);
}

export function noteNotTaken(state: Serving, { folder }: MessageOf<'takeAwayFailed'>): NodeStep {
  return maybeReady(withPhase(state, folder, { kind: 'Abandoned' }), []);
}

export function takeDesired(state: Serving, { desired }: MessageOf<'desire'>): NodeStep {
  return inCluster(state) ? desire(state, desired) : become(state);
}

export function tryAgain(state: Serving, { folder }: MessageOf<'retry'>): NodeStep {
  return inCluster(state) ? retry(state, folder) : become(state);
}

export function loseTransfers(state: Serving, { error }: MessageOf<'transfersGaveUp'>): NodeStep {
  return become<NodeState, NodeEffect>(state, { kind: 'loseTransfers', error });
}

export function loseConsensus(state: Serving, { error }: MessageOf<'consensusGaveUp'>): NodeStep {
  return become<NodeState, NodeEffect>(state, { kind: 'loseConsensus', error });
}

export function answerReady(state: ActiveNode, { replyTo }: MessageOf<'awaitReady'>): NodeStep {
  return become<NodeState, NodeEffect>(state, { kind: 'reply', replyTo, answer: true });
}

export function refuseRequest(
  state: NodeState,
  { replyTo }: MessageOf<'create' | 'delete' | 'changeAliases' | 'adopt' | 'awaitReady' | 'close'>,
): NodeStep {
  return become<NodeState, NodeEffect>(state, { kind: 'refuse', replyTo, error: refusal(state) });
}

/**
 * A Starting node becomes Active when all its collections are open or have failed; a Stopping node ends when it has no collections left and
 * its aliases are saved.
 */
function maybeReady(state: WithCollections, effects: readonly NodeEffect[]): NodeStep {
  if (state.kind === 'Starting' && state.collections.opening === 0) {
    const answers = state.waiting.map((replyTo): NodeEffect => ({ kind: 'reply', replyTo, answer: true }));
    return become<NodeState, NodeEffect>(activeNode(state.collections, state.aliases, state.cluster), ...effects, ...answers);
  }
  if (state.kind === 'Stopping' && state.collections.size === 0 && state.aliases.changes.length === 0) {
    return become<NodeState, NodeEffect>(state, ...effects, { kind: 'reply', replyTo: state.replyTo, answer: true });
  }
  return become<NodeState, NodeEffect>(state, ...effects);
}

function refusal(state: NodeState): ErrorFacts {
  switch (state.kind) {
    case 'Scanning':
    case 'Starting':
      return { code: 'unavailable', detail: 'the node is starting', retryAfterMs: 1000 };
    case 'Failed':
      return state.error;
    case 'Active':
    case 'Stopping':
      return going();
    default:
      return unreachable(state);
  }
}

function going(): ErrorFacts {
  return { code: 'unavailable', detail: 'the node is shutting down' };
}
