/**
 * The replication actor: a replica's part in the log of its shard, in an actor beside the replica's. It leads, or executes a leader's
 * calls.
 */

import { LostAnswer } from '../../cluster/data-messages.js';
import { REPLICATION_TICK_MS } from '../../cluster/replication/figures.js';
import type { PeerCall, ReplicationInput } from '../../cluster/replication/messages.js';
import { errorFacts, errorFromFacts } from '../../protocols/errors.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import { NO_TAG } from '../../protocols/model/shard-log.js';
import type { Written } from '../../protocols/model/update.js';
import { folderName } from '../../storage/disk/folder-name.js';
import type { ReplicaKey } from '../../storage/threads/messages.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import type { ActorContext, Behaviour, ReplyTo } from '../runtime/behaviour.js';
import type { AssignedShard, Assignment } from './assignments.js';
import { callOwnReplica, fetchFor, readAfter } from './own-replica.js';
import { mayHide, untilShownEverywhere } from './shown.js';
import type { ReplicationActorState } from './state.js';
import { type ReplicationActorEffect, startReplicationActor, stepReplicationActor } from './step.js';
import { TracedWrites } from './traced-writes.js';
import { ReplicationView } from './view.js';

export interface ReplicationProps {
  readonly key: ReplicaKey;
  readonly shard: AssignedShard;
  readonly entry: CollectionEntry;
  readonly services: NodeServices;
}

type ReplicationContext = ActorContext<ReplicationProps, ReplicationInput>;
type EffectOf<Kind extends ReplicationActorEffect['kind']> = Of<ReplicationActorEffect, Kind>;

interface Performing {
  readonly context: ReplicationContext;
  readonly view: ReplicationView;
  readonly traced: TracedWrites;
}

const MAILBOX_CAPACITY = 8192;
/** An answer that a write's points are not shown yet takes so long to reach the client, who is to hear it in time. */
const ANSWER_MS = 50;
/**
 * How long a call to another replica may take, in milliseconds. Entries with much to apply take a while; a silent peer is also detected by
 * other means.
 */
const CALL_MS: Readonly<Record<PeerCall['kind'], number>> = {
  append: 10_000,
  position: 2000,
  entriesAfter: 5000,
  resetLog: 30_000,
  rewindLog: 30_000,
  digest: 60_000,
  replaceBuckets: 60_000,
  applySettings: 60_000,
};
const BARRIER_MS = 5000;
const PROPOSE_MS = 5000;

export function replicationBehaviour(): Behaviour<ReplicationProps, ReplicationActorState, ReplicationInput, ReplicationActorEffect> {
  const view = new ReplicationView();
  const traced = new TracedWrites();
  return {
    kind: 'replication',
    mailboxCapacity: MAILBOX_CAPACITY,
    start: () => view.shown(startReplicationActor(view.resets)),
    step: (state, input) => view.shown(stepReplicationActor(state, input)),
    perform: (effect, context) => decideInRow(EFFECTS, { context, traced, view }, effect),
    summarize: (input) => decideInRow(SUMMARIES, undefined, input),
  };
}

const EFFECTS: Row<ReplicationActorEffect, Performing, void> = {
  begin,
  tickLater: ({ context }) => void context.after(REPLICATION_TICK_MS, { kind: 'tick' }),
  log: ({ context }, { level, text }) => context.log[level](`${context.path}: ${text}`),
  locate,
  barrier,
  logWrite,
  takeOver,
  call,
  read,
  fetch,
  carryOut: ({ context }, { call: asked, caller }) => {
    const { key, services } = context.props;
    answerWith(context, caller, callOwnReplica(services.engine, services.copyRoom, key, asked));
  },
  findMissing: ({ context }, { caller, deadlineMs, ids }) => {
    const { key, services } = context.props;
    answerWith(context, caller, services.engine.missing(key, ids, deadlineMs));
  },
  acknowledge,
  answer: ({ context }, { answer, caller }) => context.reply(caller as ReplyTo<typeof answer>, answer),
  refuse: ({ context, traced }, { caller, error }) => {
    traced.ended(caller);
    context.fail(caller, errorFromFacts(error));
  },
  judgeAlone,
  noteAhead,
  proposeDead,
};

function begin({ context, view }: Performing): void {
  const { entry, services, shard } = context.props;
  const { assignments, store } = services;
  // What a cluster did not have when this node left it is for the time when it is back.
  const isAhead = () => !assignments.isAlone && store.isAhead(folderName(shard.collection), shard.shardId);
  entry.replications.set(
    shard.shardId,
    view.entry(context.self, isAhead, () => entry.onChange?.()),
  );
  context.report({ kind: 'aheadNoted', isAhead: isAhead() });
  const tell = (assignment: Assignment | null) => {
    context.report({ kind: 'assigned', self: assignments.peerId, assignment, isSettled: assignments.isSettled });
  };
  context.onEnd(assignments.watch(shard, tell));
  tell(assignments.of(shard));
  // A replica that is open already reports nothing more.
  if (entry.replicas.get(shard.shardId)?.state === 'Serving') context.report({ kind: 'opened' });
}

function locate({ context }: Performing, { run }: EffectOf<'locate'>): void {
  const { key, services } = context.props;
  context.settle(
    services.engine.position(key),
    // A node without a cluster continues what a cluster wrote under its own tag.
    ({ last }) => ({ kind: 'located', run, last: services.assignments.isAlone ? { ...NO_TAG, index: last.index } : last }),
    (error) => ({ kind: 'locateFailed', run, error }),
  );
}

function barrier({ context }: Performing, { run }: EffectOf<'barrier'>): void {
  const { services, shard } = context.props;
  const passed = async () => {
    await services.barrier?.(BARRIER_MS);
    services.assignments.settle();
  };
  context.settle(
    passed(),
    () => ({ kind: 'barrierPassed', run, assignment: services.assignments.of(shard) }),
    (error) => ({ kind: 'barrierFailed', run, error }),
  );
}

function logWrite({ context, traced }: Performing, { as, input, run, write }: EffectOf<'logWrite'>): void {
  const { key, services } = context.props;
  context.settle(
    services.engine.write(key, as, input),
    ({ entries, failure }) => {
      traced.logged(input.caller, input.hops, entries);
      return { kind: 'logged', run, write, entries, failure };
    },
    (error) => ({ kind: 'logFailed', run, write, error }),
  );
}

function takeOver({ context }: Performing, { entries, previous, run }: EffectOf<'takeOver'>): void {
  const { key, services } = context.props;
  context.settle(
    services.engine.append(key, previous, entries, 'logged'),
    (last) => ({ kind: 'tookOver', run, last }),
    (error) => ({ kind: 'takeOverFailed', run, error }),
  );
}

function call({ context, traced }: Performing, { call: number, leader, peer, request, run, since, term }: EffectOf<'call'>): void {
  const { services, shard } = context.props;
  const to = { shard, since, term };
  const full = request.kind === 'append' ? { ...request, ...to, leader } : { ...request, ...to };
  const ended = request.kind === 'append' ? traced.sent(peer, request.entries) : undefined;
  services.calls.call(peer, full, CALL_MS[request.kind]).then(
    (answer) => {
      ended?.();
      context.report({ kind: 'answered', run, peer, call: number, answer });
    },
    (error: unknown) => {
      ended?.();
      const isLost = error instanceof LostAnswer;
      context.report({ kind: 'callFailed', run, peer, call: number, error: errorFacts(error), isLost });
    },
  );
}

function read({ context }: Performing, { after, bytesMax, call: number, peer, run }: EffectOf<'read'>): void {
  const { key, services } = context.props;
  context.settle(
    readAfter(services.engine, key, after, bytesMax),
    (part) => ({ kind: 'readDone', run, peer, call: number, part }),
    (error) => ({ kind: 'readFailed', run, peer, call: number, error }),
  );
}

function fetch({ context }: Performing, { fetch: wanted, job, peer, run }: EffectOf<'fetch'>): void {
  const { key, services } = context.props;
  context.settle(
    fetchFor(services.engine, key, wanted),
    (value) => ({ kind: 'fetched', run, peer, job, value }),
    (error) => ({ kind: 'fetchFailed', run, peer, job, error }),
  );
}

function answerWith<Answer>(context: ReplicationContext, caller: ReplyTo<Answer>, answer: Promise<Answer>): void {
  answer.then(
    (value) => context.reply(caller, value),
    (error: unknown) => context.fail(caller, error),
  );
}

/** Answers a write. If it waits to be visible, waits on for what only this node sees: deferred points, the index of every segment. */
function acknowledge({ context, traced }: Performing, { failure, input, numbers }: EffectOf<'acknowledge'>): void {
  const { entry, key, services, shard } = context.props;
  const { caller, deadlineMs, operation, until } = input;
  traced.ended(caller);
  if (failure !== null) {
    context.fail(caller, errorFromFacts(failure));
    return;
  }
  const written: Written = { numbers, status: until === 'logged' ? 'acknowledged' : 'completed' };
  const replica = entry.replicas.get(shard.shardId)?.actor;
  if (operation === 'createFieldIndex' && until !== 'logged' && replica !== undefined) {
    const answer = { replyTo: caller, written };
    context.forward(replica, { kind: 'indexCreated', answer, stats: services.engine.stats(key) }, caller);
    return;
  }
  if (until !== 'shown' || !mayHide(services.engine.stats(key))) {
    context.reply(caller, written);
    return;
  }
  // What is not shown when the replica closes is shown when it is open again.
  const stopWaiting = context.onEnd(() => context.reply(caller, { ...written, status: 'acknowledged' }));
  untilShownEverywhere(services, key, shard, deadlineMs - ANSWER_MS, context.clock).then((shown) => {
    stopWaiting();
    // The write is on disk, and its points are shown when they are indexed: nothing that a client would have to try again.
    context.reply(caller, shown ? written : { ...written, status: 'wait_timeout' });
  });
}

function judgeAlone({ context }: Performing, { peer, run }: EffectOf<'judgeAlone'>): void {
  context.report({ kind: 'aloneJudged', run, peer, isAlone: context.props.services.assignments.isAloneWithout(peer) });
}

function noteAhead({ context }: Performing, { isAhead }: EffectOf<'noteAhead'>): void {
  const { services, shard } = context.props;
  context.settle(
    services.store.noteAhead(folderName(shard.collection), shard.shardId, isAhead),
    () => ({ kind: 'aheadNoted', isAhead }),
    (error) => ({ kind: 'noteFailed', isAhead, error }),
  );
}

function proposeDead({ context }: Performing, { from, peer, term }: EffectOf<'proposeDead'>): void {
  const { services, shard } = context.props;
  const change = { ...shard, peerId: peer, from, to: 'Dead', term } as const;
  context.settle(
    services.propose({ kind: 'setReplicaStates', changes: [change] }, PROPOSE_MS),
    () => ({ kind: 'deathProposed', peer, error: null }),
    (error) => ({ kind: 'deathProposed', peer, error }),
  );
}

const ofPeer = (_: undefined, { peer }: { readonly peer: number }) => String(peer);
const detailOf = (_: undefined, { error }: { readonly error: { readonly detail: string } }) => error.detail;
const nothing = () => '';

const SUMMARIES: Row<ReplicationInput, undefined, string> = {
  assigned: (_, { assignment }) => (assignment === null ? 'none' : `peer ${assignment.leader} in term ${assignment.term}`),
  write: (_, { operation, operations, until }) => `${operation}, ${operations.length} operations, until ${until}`,
  called: (_, { call: { kind }, from }) => `${kind} from ${from}`,
  aheadNoted: (_, { isAhead }) => String(isAhead),
  aloneJudged: (_, { isAlone, peer }) => `${peer}: ${isAlone}`,
  attach: ofPeer,
  compare: ofPeer,
  fill: ofPeer,
  require: ofPeer,
  release: ofPeer,
  answered: ofPeer,
  callFailed: ofPeer,
  readDone: ofPeer,
  readFailed: ofPeer,
  fetched: ofPeer,
  fetchFailed: ofPeer,
  deathProposed: ofPeer,
  closed: detailOf,
  locateFailed: detailOf,
  barrierFailed: detailOf,
  logFailed: detailOf,
  takeOverFailed: detailOf,
  noteFailed: detailOf,
  opened: nothing,
  tick: nothing,
  missing: nothing,
  pause: nothing,
  resume: nothing,
  located: nothing,
  barrierPassed: nothing,
  logged: nothing,
  tookOver: nothing,
};
