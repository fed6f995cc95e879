/**
 * How a node of a cluster makes what it has what is desired. Each look compares both and begins moves; whatever comes of a
 * move leads to the next look at its folder. Nothing is remembered that a crash could lose: a new start looks at everything.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import { type Step, unreachable } from '../runtime/behaviour.js';
import {
  ALIASES,
  type ClusterWork,
  carriedOut,
  changed,
  type RunningMove,
  sameAliases,
  sameCarriedOut,
  sameWanted,
  type Trouble,
} from './cluster-work.js';
import type { Desired } from './desired.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import { type Move, reconcile, wantedByFolder } from './reconcile.js';
import { type ActiveNode, NOBODY, type NodeState, type StartingNode, withPhase } from './state.js';

export type InCluster = (StartingNode | ActiveNode) & { readonly cluster: ClusterWork };

interface Looked {
  readonly state: InCluster;
  readonly effects: readonly NodeEffect[];
}

export function inCluster(state: NodeState): state is InCluster {
  return (state.kind === 'Starting' || state.kind === 'Active') && state.cluster !== null;
}

/** Takes over what is desired from now on; what is owed since before stays owed. */
export function desire(state: InCluster, desired: Desired): Looked {
  const before = state.cluster;
  const wanted = wantedByFolder(desired);
  const since = before.desired === null ? 0 : before.desired.index + 1;
  const folders = new Set([...wanted.keys(), ...before.wanted.keys(), ...state.collections.keys()]);
  const owed = new Map(before.owed);
  const troubles = new Map(before.troubles);
  for (const folder of folders) {
    if (before.desired !== null && sameWanted(before.wanted.get(folder) ?? null, wanted.get(folder) ?? null)) continue;
    if (!owed.has(folder)) owed.set(folder, since);
    // What failed was something else: this is tried at once.
    troubles.delete(folder);
  }
  if (!owed.has(ALIASES)) owed.set(ALIASES, since);
  return lookAt(withWork(state, { desired, wanted, owed, troubles }), folders);
}

/** After each message: what it says of a move, what there is to do now in its folder, and how far things are. */
export function carryOn(step: Step<NodeState, NodeEffect>, message: NodeMessage): Step<NodeState, NodeEffect> {
  const effects = [...step.effects];
  let { state }: { state: NodeState } = step;
  for (const next of [settle, adoptAll, look, tell]) {
    if (!inCluster(state)) break;
    const looked: Looked = next(state, message);
    state = looked.state;
    effects.push(...looked.effects);
  }
  return { state, effects };
}

/** A time that was set has come. */
export function retry(state: InCluster, folder: string): InCluster {
  const trouble = state.cluster.troubles.get(folder);
  if (trouble === undefined) return state;
  return withWork(state, { troubles: changed(state.cluster.troubles, folder, { ...trouble, waits: false }) });
}

/** What became of the move that is made in the message's folder. */
function settle(state: InCluster, message: NodeMessage): Looked {
  if (message.kind === 'aliasesNotSaved') return retryAliases(state, message.error);
  const move = 'folder' in message ? state.cluster.running.get(message.folder) : undefined;
  if (move === undefined) return nothing(state);
  switch (message.kind) {
    case 'collectionOpened':
      if (move.kind === 'create') return noteDone(state, message.folder, move);
      // It came back from a crash and knows nothing of its deletion.
      if (move.kind === 'delete') return { state, effects: [{ kind: 'deleteCollection', folder: message.folder, replyTo: null }] };
      return move.kind === 'setAside' ? { state, effects: [{ kind: 'retireCollection', folder: message.folder }] } : nothing(state);
    case 'collectionDied':
      return move.kind === 'reshape' || move.kind === 'adopt' ? nothing(state) : noteFailed(state, message.folder, move, message.error);
    case 'collectionGaveUp':
      // It is there, as one that has given up.
      if (move.kind === 'create') return noteDone(state, message.folder, move);
      return move.kind === 'reshape' || move.kind === 'adopt' ? nothing(state) : noteFailed(state, message.folder, move, message.error);
    case 'collectionClosed':
      if (move.kind !== 'setAside') return nothing(state);
      return takeAway(withPhase(state, message.folder, { kind: 'Deleting' }), message.folder, move);
    case 'reshaped':
    case 'collectionDeleted':
    case 'takenAway':
      return noteDone(state, message.folder, move);
    case 'createFailed':
    case 'reshapeFailed':
    case 'takeAwayFailed':
      return noteFailed(state, message.folder, move, message.error);
    default:
      return nothing(state);
  }
}

function noteDone(state: InCluster, folder: string, move: RunningMove): Looked {
  const { adopting, holdings, owed, running, troubles } = state.cluster;
  const next = withWork(state, {
    running: changed(running, folder, null),
    troubles: changed(troubles, folder, null),
    holdings: changed(holdings, folder, move.holding),
    // What goes makes room for what is desired, perhaps: that is still owed.
    owed: owed.has(folder) && move.holding !== null ? changed(owed, folder, move.index + 1) : owed,
  });
  if (adopting === null || adopting.left === null || !adopting.left.has(folder)) return nothing(next);
  const left = new Set([...adopting.left].filter((other) => other !== folder));
  if (left.size > 0) return nothing(withWork(next, { adopting: { ...adopting, left } }));
  return { state: withWork(next, { adopting: null }), effects: [{ kind: 'reply', replyTo: adopting.replyTo, answer: true }] };
}

/** A move that failed is tried again later, unless something else is desired by then. */
function noteFailed(state: InCluster, folder: string, move: RunningMove, error: ErrorFacts): Looked {
  const { adopting, owed, running, troubles } = state.cluster;
  const next = withWork(state, { running: changed(running, folder, null) });
  if (move.kind === 'adopt') {
    if (adopting === null) return nothing(next);
    return { state: withWork(next, { adopting: null }), effects: [{ kind: 'refuse', replyTo: adopting.replyTo, error }] };
  }
  const attempts = (troubles.get(folder)?.attempts ?? 0) + 1;
  const trouble: Trouble = { detail: error.detail, attempts, ofReplicas: false, waits: true };
  return {
    state: withWork(next, { troubles: changed(troubles, folder, trouble), owed: changed(owed, folder, null) }),
    effects: [{ kind: 'retryLater', folder, attempt: attempts }],
  };
}

/** Begins to make collections those of a new cluster, once all of them have been opened or are known not to be. */
function adoptAll(state: InCluster): Looked {
  const { adopting, holdings, running } = state.cluster;
  if (adopting === null || adopting.left !== null || state.kind === 'Starting') return nothing(state);
  const moves: [string, RunningMove][] = [];
  const effects: NodeEffect[] = [];
  for (const [folder, belonging] of adopting.adoption) {
    const holding = holdings.get(folder);
    const isFree = !running.has(folder) && state.collections.get(folder)?.kind !== 'Deleting';
    if (holding === undefined || !isFree) {
      const error: ErrorFacts = { code: 'unavailable', detail: `the collection in ${folder} is being changed`, retryAfterMs: 1000 };
      return { state: withWork(state, { adopting: null }), effects: [{ kind: 'refuse', replyTo: adopting.replyTo, error }] };
    }
    moves.push([folder, { kind: 'adopt', index: belonging.index, holding: { ...holding, belonging }, reason: '' }]);
    effects.push({ kind: 'reshapeCollection', folder, config: holding.config, belonging });
  }
  if (moves.length === 0) {
    return { state: withWork(state, { adopting: null }), effects: [{ kind: 'reply', replyTo: adopting.replyTo, answer: true }] };
  }
  const left = new Set(moves.map(([folder]) => folder));
  return { state: withWork(state, { running: new Map([...running, ...moves]), adopting: { ...adopting, left } }), effects };
}

function look(state: InCluster, message: NodeMessage): Looked {
  const looked = 'folder' in message ? lookAt(state, [message.folder]) : nothing(state);
  const aliases = lookAtAliases(looked.state);
  return { state: aliases.state, effects: [...looked.effects, ...aliases.effects] };
}

function lookAt(state: InCluster, folders: Iterable<string>): Looked {
  const effects: NodeEffect[] = [];
  let next = state;
  for (const folder of folders) {
    const looked = folder === ALIASES ? nothing(next) : lookAtFolder(next, folder);
    next = looked.state;
    effects.push(...looked.effects);
  }
  return { state: next, effects };
}

function lookAtFolder(state: InCluster, folder: string): Looked {
  const { desired, holdings, owed, running, troubles, wanted } = state.cluster;
  if (desired === null || running.has(folder)) return nothing(state);
  const phase = state.collections.get(folder);
  const there = phase === undefined ? null : { phase, holding: holdings.get(folder) ?? null };
  const finding = reconcile(there, wanted.get(folder) ?? null, desired);
  switch (finding.kind) {
    case 'wait':
      return nothing(state);
    case 'done':
      return nothing(withWork(state, { owed: changed(owed, folder, null), troubles: changed(troubles, folder, null) }));
    case 'fault': {
      const trouble: Trouble = { detail: finding.detail, attempts: 0, ofReplicas: finding.ofReplicas, waits: false };
      return nothing(withWork(state, { owed: changed(owed, folder, null), troubles: changed(troubles, folder, trouble) }));
    }
    case 'move':
      return troubles.get(folder)?.waits === true ? nothing(state) : begin(state, folder, finding.move, desired);
    default:
      return unreachable(finding);
  }
}

function begin(state: InCluster, folder: string, move: Move, { index }: Desired): Looked {
  const isAbandoned = state.collections.get(folder)?.kind === 'Abandoned';
  const holding = state.cluster.holdings.get(folder) ?? null;
  const run = (running: Omit<RunningMove, 'index' | 'kind'>) =>
    withWork(state, { running: changed(state.cluster.running, folder, { ...running, kind: move.kind, index }) });
  switch (move.kind) {
    case 'create': {
      const { name, create } = move;
      const next = run({ holding: { name, ...create }, reason: '' });
      return {
        state: withPhase(next, folder, { kind: 'Creating', replyTo: NOBODY }),
        effects: [{ kind: 'createCollection', name, folder, create }],
      };
    }
    case 'reshape': {
      const { belonging, config } = move;
      return {
        state: run({ holding: { name: holding?.name ?? folder, belonging, config }, reason: '' }),
        effects: [{ kind: 'reshapeCollection', folder, config, belonging }],
      };
    }
    case 'delete':
    case 'setAside': {
      const next = withPhase(run({ holding: null, reason: move.kind === 'setAside' ? move.reason : '' }), folder, { kind: 'Deleting' });
      if (isAbandoned) return takeAway(next, folder, next.cluster.running.get(folder) as RunningMove);
      if (move.kind === 'setAside') return { state: next, effects: [{ kind: 'retireCollection', folder }] };
      return { state: next, effects: [{ kind: 'deleteCollection', folder, replyTo: null }] };
    }
    default:
      return unreachable(move);
  }
}

/** Its actor is gone: so go its files. */
function takeAway(state: InCluster, folder: string, { kind, reason }: RunningMove): Looked {
  return { state, effects: [{ kind: 'takeAway', folder, keep: kind === 'setAside', reason }] };
}

/** Aliases are saved one change after the other; one that cannot be saved is owed until it can. */
function lookAtAliases(state: InCluster): Looked {
  const { aliases, cluster } = state;
  if (cluster.desired === null || !cluster.owed.has(ALIASES)) return nothing(state);
  if (aliases.changes.length > 0 || cluster.troubles.get(ALIASES)?.waits === true) return nothing(state);
  if (sameAliases(aliases.known, cluster.desired.aliases)) {
    return nothing(withWork(state, { owed: changed(cluster.owed, ALIASES, null), troubles: changed(cluster.troubles, ALIASES, null) }));
  }
  const wanted = cluster.desired.aliases;
  return {
    state: { ...state, aliases: { ...aliases, saving: wanted, changes: [{ kind: 'replace', aliases: wanted, replyTo: NOBODY }] } },
    effects: [{ kind: 'saveAliases', aliases: wanted }],
  };
}

function retryAliases(state: InCluster, error: ErrorFacts): Looked {
  const attempts = (state.cluster.troubles.get(ALIASES)?.attempts ?? 0) + 1;
  const trouble: Trouble = { detail: error.detail, attempts, ofReplicas: false, waits: true };
  return {
    state: withWork(state, { troubles: changed(state.cluster.troubles, ALIASES, trouble) }),
    effects: [{ kind: 'retryLater', folder: ALIASES, attempt: attempts }],
  };
}

function tell(state: InCluster): Looked {
  const said = carriedOut(state.cluster);
  const { told } = state.cluster;
  if (said === null || (told !== null && sameCarriedOut(told, said))) return nothing(state);
  return { state: withWork(state, { told: said }), effects: [{ kind: 'tellCarriedOut', carriedOut: said }] };
}

function withWork(state: InCluster, work: Partial<ClusterWork>): InCluster {
  return { ...state, cluster: { ...state.cluster, ...work } };
}

function nothing(state: InCluster): Looked {
  return { state, effects: [] };
}
