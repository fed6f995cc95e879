/** The replication actor: a replica's part in its shard's log, beside the replica. It leads, or does what a leader calls for. */

import { LostAnswer } from '../../cluster/data-messages.js';
import { TICK_MS } from '../../cluster/replication/figures.js';
import type { PeerCall, ReplicationInput, TransferAnswer } from '../../cluster/replication/messages.js';
import type { ReplicationState } from '../../cluster/replication/state.js';
import { startReplication } from '../../cluster/replication/state.js';
import { type ErrorFacts, errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { ReplicaState } from '../../protocols/model/cluster.js';
import type { ReplicaKey, Written } from '../../storage/threads/messages.js';
import { folderName } from '../context/folder-name.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { type ActorContext, type Behaviour, type ReplyTo, type Step, unreachable } from '../runtime/behaviour.js';
import { Ahead } from './ahead.js';
import type { AssignedShard, Assignment } from './assignments.js';
import type { Attached, Compared, Filled, ReplicationActorEffect, ReplicationMessage } from './messages.js';
import { carryOut, fetchFor, readAfter } from './own-replica.js';
import { mayHide, untilShownEverywhere } from './shown.js';
import type { ReplicationActorState } from './state.js';
import { startReplicationActor, stepReplication } from './step.js';
import { isHeldByAll, statusOf } from './view.js';

export interface ReplicationProps {
  readonly key: ReplicaKey;
  readonly shard: AssignedShard;
  readonly entry: CollectionEntry;
  readonly services: NodeServices;
}

type ReplicationContext = ActorContext<ReplicationProps, ReplicationMessage>;
type EffectOf<Kind extends ReplicationActorEffect['kind']> = Extract<ReplicationActorEffect, { kind: Kind }>;

const MAILBOX_CAPACITY = 8192;
/** How long another replica may take. Entries with much to apply take a while; a silent peer is found out by the others, too. */
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

export function replicationBehaviour(): Behaviour<ReplicationProps, ReplicationActorState, ReplicationMessage, ReplicationActorEffect> {
  let newest: ReplicationState = startReplication();
  /** Peers whose death is being proposed. */
  let proposed = new Set<number>();
  /** See `ReplicationEntry.resets`. */
  let resets = 0;
  let ahead: Ahead | null = null;

  function remembered(step: Step<ReplicationActorState, ReplicationActorEffect>): Step<ReplicationActorState, ReplicationActorEffect> {
    newest = step.state.core;
    return step;
  }

  function perform(effect: ReplicationActorEffect, context: ReplicationContext): void {
    const { entry, key, services, shard } = context.props;
    const { engine } = services;
    if (ahead?.may === true && isHeldByAll(statusOf(newest))) ahead.end(() => isHeldByAll(statusOf(newest)));
    switch (effect.kind) {
      case 'begin':
        ahead = new Ahead(services.store, folderName(shard.collection), shard.shardId);
        entry.replications.set(shard.shardId, {
          actor: context.self,
          resets: () => resets,
          mayBeAhead: () => ahead?.may !== false && newest.role.kind !== 'Following',
          status: () => statusOf(newest),
        });
        begin(context);
        break;
      case 'tickLater':
        context.after(TICK_MS, { kind: 'happened', input: { kind: 'tick' } });
        break;
      case 'log':
        context.log[effect.level](`${context.path}: ${effect.text}`);
        break;
      case 'locate':
        settle(
          context,
          engine.position(key),
          ({ last }) => ({ kind: 'located', run: effect.run, last }),
          (error) => ({ kind: 'locateFailed', run: effect.run, error }),
        );
        break;
      case 'barrier':
        settle(
          context,
          barrier(services),
          () => ({ kind: 'barrierPassed', run: effect.run, assignment: services.assignments.of(shard) }),
          (error) => ({ kind: 'barrierFailed', run: effect.run, error }),
        );
        break;
      case 'logWrite':
        logWrite(effect, context, newest.self);
        break;
      case 'takeOver':
        settle(
          context,
          engine.append(key, effect.previous, effect.entries, 'logged'),
          (last) => ({ kind: 'tookOver', run: effect.run, last }),
          (error) => ({ kind: 'takeOverFailed', run: effect.run, error }),
        );
        break;
      case 'call':
        call(effect, context, newest);
        break;
      case 'read':
        settle(
          context,
          readAfter(engine, key, effect.after, effect.bytesMax),
          (part) => ({ kind: 'readDone', run: effect.run, peer: effect.peer, call: effect.call, part }),
          (error) => ({ kind: 'readFailed', run: effect.run, peer: effect.peer, call: effect.call, error }),
        );
        break;
      case 'fetch':
        settle(
          context,
          fetchFor(engine, key, effect.fetch),
          (value) => ({ kind: 'fetched', run: effect.run, peer: effect.peer, job: effect.job, value }),
          (error) => ({ kind: 'fetchFailed', run: effect.run, peer: effect.peer, job: effect.job, error }),
        );
        break;
      case 'carryOut':
        if (effect.call.kind === 'resetLog' || effect.call.kind === 'rewindLog') resets += 1;
        answerWith(context, effect.caller, carryOut(engine, key, effect.call));
        break;
      case 'findMissing':
        answerWith(context, effect.caller, engine.missing(key, effect.ids, effect.deadlineMs));
        break;
      case 'acknowledge':
        acknowledge(effect, context);
        break;
      case 'answer':
        context.reply(effect.caller as ReplyTo<Attached | Compared | Filled | boolean>, answerOf(effect.answer));
        break;
      case 'refuse':
        context.fail(effect.caller, errorFromFacts(effect.error));
        break;
      case 'proposeDead':
        if (services.assignments.isAloneWithout(effect.peer)) goOnAlone(effect, ahead, context);
        else proposeDead(effect, newest.assignment?.replicas.get(effect.peer) ?? null, proposed, context);
        break;
      default:
        unreachable(effect);
    }
  }

  return {
    kind: 'replication',
    mailboxCapacity: MAILBOX_CAPACITY,
    start: () => {
      proposed = new Set();
      return remembered(startReplicationActor());
    },
    step: (state, message) => remembered(stepReplication(state, message)),
    perform,
    summarize,
  };
}

function begin(context: ReplicationContext): void {
  const { entry, services, shard } = context.props;
  const { assignments } = services;
  const tell = (assignment: Assignment | null) => {
    context.report({ kind: 'assigned', self: assignments.peerId, assignment, isSettled: assignments.isSettled });
  };
  context.onEnd(assignments.watch(shard, tell));
  tell(assignments.of(shard));
  // A replica that is open already says so no more.
  if (entry.replicas.get(shard.shardId)?.state === 'Serving') context.report({ kind: 'opened' });
}

function settle<Value>(
  context: ReplicationContext,
  promise: Promise<Value>,
  onValue: (value: Value) => ReplicationInput,
  onError: (error: ErrorFacts) => ReplicationInput,
): void {
  context.settle(
    promise,
    (value) => ({ kind: 'happened', input: onValue(value) }),
    (error) => ({ kind: 'happened', input: onError(error) }),
  );
}

function logWrite({ term, input, run, indexAfter, write }: EffectOf<'logWrite'>, context: ReplicationContext, peer: number): void {
  const { key, services } = context.props;
  const { deadlineMs, operations, until, usage } = input;
  const logged = services.engine.writeOrdered(key, {
    peer,
    term,
    indexAfter,
    operations,
    until: until === 'logged' ? 'logged' : 'applied',
    deadlineMs,
    ...(usage === undefined ? {} : { usage }),
  });
  settle(
    context,
    logged,
    ({ entries, failure }) => ({ kind: 'logged', run, write, entries, failure }),
    (error) => ({ kind: 'logFailed', run, write, error }),
  );
}

function call(
  { call, term, peer, request, run }: EffectOf<'call'>,
  context: ReplicationContext,
  { assignment, self }: ReplicationState,
): void {
  const { services, shard } = context.props;
  const to = { shard, since: assignment?.since.get(peer) ?? 0, term };
  const full = request.kind === 'append' ? { ...request, ...to, leader: self } : { ...request, ...to };
  services.calls.call(peer, full, CALL_MS[request.kind]).then(
    (answer) => context.report({ kind: 'happened', input: { kind: 'answered', run, peer, call, answer } }),
    (error: unknown) => {
      const isLost = error instanceof LostAnswer;
      context.report({ kind: 'happened', input: { kind: 'callFailed', run, peer, call, error: errorFacts(error), isLost } });
    },
  );
}

function answerWith<Answer>(context: ReplicationContext, caller: number, answer: Promise<Answer>): void {
  answer.then(
    (value) => context.reply(caller as ReplyTo<Answer>, value),
    (error: unknown) => context.fail(caller, error),
  );
}

/** Waits on for what only this node sees: the points that reads do not see yet, the index of every segment. */
function acknowledge({ failure, input, numbers }: EffectOf<'acknowledge'>, context: ReplicationContext): void {
  const { entry, key, services, shard } = context.props;
  const replyTo = input.caller as ReplyTo<Written>;
  if (failure !== null) {
    context.fail(replyTo, errorFromFacts(failure));
    return;
  }
  const written: Written = { numbers, status: input.until === 'logged' ? 'acknowledged' : 'completed' };
  const replica = entry.replicas.get(shard.shardId)?.actor;
  if (input.operation === 'createFieldIndex' && input.until !== 'logged' && replica !== undefined) {
    const answer = { replyTo, body: written };
    context.forward(replica, { kind: 'indexCreated', answer, stats: services.engine.stats(key) }, replyTo);
    return;
  }
  if (input.until !== 'shown' || !mayHide(services.engine.stats(key))) {
    context.reply(replyTo, written);
    return;
  }
  untilShownEverywhere(services, key, shard, input.deadlineMs, context.clock).then((shown) => {
    const late = 'the write is on disk, and reads do not see all of its points yet: they will when they are indexed';
    if (shown) context.reply(replyTo, written);
    else context.fail(replyTo, new TroupeError('timeout', late, { outcome: 'unknown' }));
  });
}

/** Log-L9. It is tried again when it cannot be noted. */
function goOnAlone({ peer, run }: EffectOf<'proposeDead'>, ahead: Ahead | null, context: ReplicationContext): void {
  const { assignments } = context.props.services;
  ahead?.begin().then(
    () => {
      // The peer may have come back meanwhile.
      if (assignments.isAloneWithout(peer)) context.report({ kind: 'happened', input: { kind: 'excused', run, peer } });
    },
    (error: unknown) => context.log.warn(`${context.path}: it cannot go on alone: ${errorFacts(error).detail}`),
  );
}

/** from: what is known of it. A proposal that comes late must not end a transfer that fills it again. */
function proposeDead(
  { term, peer }: EffectOf<'proposeDead'>,
  from: ReplicaState | null,
  proposed: Set<number>,
  context: ReplicationContext,
): void {
  const { services, shard } = context.props;
  if (proposed.has(peer)) return;
  proposed.add(peer);
  const change = { ...shard, peerId: peer, from, to: 'Dead', term } as const;
  services
    .propose({ kind: 'setReplicaStates', changes: [change] }, PROPOSE_MS)
    .catch((error: unknown) => context.log.info(`${context.path}: that peer ${peer} is Dead is not agreed: ${errorFacts(error).detail}`))
    .finally(() => proposed.delete(peer));
}

async function barrier({ assignments, barrier: pass }: NodeServices): Promise<void> {
  await pass?.(BARRIER_MS);
  assignments.settle();
}

function answerOf(answer: TransferAnswer): Attached | Compared | Filled | boolean {
  switch (answer.kind) {
    case 'attached':
      return { how: answer.how, entries: answer.entries };
    case 'compared':
      return { buckets: answer.buckets, points: answer.points, total: answer.total };
    case 'filled':
      return { changed: answer.changed, points: answer.points, bytes: answer.bytes };
    case 'required':
    case 'paused':
      return true;
    default:
      return unreachable(answer);
  }
}

function summarize(message: ReplicationMessage): string {
  switch (message.kind) {
    case 'assigned':
      return message.assignment === null ? 'none' : `peer ${message.assignment.leader} in term ${message.assignment.term}`;
    case 'write':
      return `${message.operation}, ${message.operations.length} operations, until ${message.until}`;
    case 'call':
      return `${message.call.kind} from ${message.from}`;
    case 'attach':
    case 'compare':
    case 'fill':
    case 'require':
    case 'release':
      return String(message.peer);
    case 'happened':
      return 'peer' in message.input ? `${message.input.kind} ${message.input.peer}` : message.input.kind;
    case 'closed':
      return message.error.detail;
    case 'opened':
    case 'missing':
    case 'pause':
    case 'resume':
      return '';
    default:
      return unreachable(message);
  }
}
