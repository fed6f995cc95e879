/** The consensus actor: a node's part in its cluster's consensus. */

import type { PeerReply, PeerRequest } from '../../cluster/peer-messages.js';
import { stepRaft as raftStep } from '../../cluster/raft/step.js';
import { TroupeError } from '../../protocols/errors.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import type { LocalData } from '../context/desired.js';
import type { NodeMessage } from '../node/messages.js';
import type { ActorContext, ActorRef, Behaviour, ReplyTo, Step } from '../runtime/behaviour.js';
import type { Cancel } from '../runtime/ports.js';
import { JOIN_MS, PEER_REQUEST_MS } from './client.js';
import { type ClusterOptions, TRANSFER_LIMITS } from './cluster-api.js';
import type { ConsensusLink } from './link.js';
import { COUNTED_ON_MS } from './membership/survivor.js';
import type { ConsensusEffect, ConsensusMessage, OwnReplica } from './messages.js';
import type { ConsensusState, Settings } from './state.js';
import { startConsensus, stepConsensus } from './step.js';
import type { ConsensusView } from './view.js';

export interface ConsensusProps {
  readonly options: ClusterOptions;
  readonly view: ConsensusView;
  readonly link: ConsensusLink;
  readonly node: ActorRef<NodeMessage>;
  /** Replicas of this node that do not serve. */
  readonly deadReplicas: () => readonly OwnReplica[];
  /** Whether this node's disk counts as full (Disk-D4). */
  readonly isDiskFull: () => boolean;
  readonly local: LocalData;
}

type ConsensusContext = ActorContext<ConsensusProps, ConsensusMessage>;
type EffectOf<Kind extends ConsensusEffect['kind']> = Of<ConsensusEffect, Kind>;

/** Most messages in the mailbox; more from peers are dropped, as Raft sends them again. */
const MAILBOX_CAPACITY = 4096;
/** No limit for adoption, as the collections are read first. */
const ADOPT_MS = 0x7fff_ffff;

/** References of the shell besides the actor's state. */
interface ConsensusRefs {
  /** Counts loads of the log; results that belong to an earlier load are dropped. */
  loads: number;
  cancelTick: Cancel;
  /** A check whether a peer has ended is under way. */
  looking: boolean;
}

interface ConsensusShell {
  readonly context: ConsensusContext;
  readonly refs: ConsensusRefs;
}

export function consensusBehaviour(): Behaviour<ConsensusProps, ConsensusState, ConsensusMessage, ConsensusEffect> {
  let view: ConsensusView;
  const refs: ConsensusRefs = { loads: 0, cancelTick: () => {}, looking: false };

  function shown(step: Step<ConsensusState, ConsensusEffect>): Step<ConsensusState, ConsensusEffect> {
    view.show(step.state);
    return step;
  }

  return {
    kind: 'consensus',
    mailboxCapacity: MAILBOX_CAPACITY,
    start: (props) => {
      view = props.view;
      refs.cancelTick = () => {};
      return shown(startConsensus(settingsOf(props)));
    },
    step: (state, message) => shown(stepConsensus(state, message)),
    perform: (effect, context) => decideInRow(EFFECTS, { context, refs }, effect),
    summarize,
  };
}

function settingsOf({ local, options }: ConsensusProps): Settings {
  const { bootstrap, compactEntries, port, tickMs, uri, version } = options;
  return {
    uri,
    bootstrap,
    port,
    version,
    tickMs,
    compactEntries,
    listens: options.listens ?? false,
    transferLimits: options.transferLimits ?? TRANSFER_LIMITS,
    transferMethod: options.transferMethod ?? 'stream_records',
    survives: options.survives ?? true,
    raftStep: options.raftStep ?? raftStep,
    local,
  };
}

const EFFECTS: Row<ConsensusEffect, ConsensusShell, void> = {
  load: ({ context, refs }) => {
    const { link, options, view } = context.props;
    view.actor = context.self;
    refs.loads += 1;
    context.settle(
      options.store.load(),
      (stored) => ({ kind: 'loaded', stored, drawn: link.drawn(context.random, context.clock) }),
      (error) => ({ kind: 'loadFailed', error }),
    );
  },
  listen: ({ context }, { peerId }) => {
    context.props.link.listen(peerId).catch((error: unknown) => {
      const detail = `the internal port cannot be used: ${error instanceof Error ? error.message : String(error)}`;
      context.report({ kind: 'listenFailed', error: { code: 'unavailable', detail } });
    });
  },
  adopt: ({ context }, { adoption }) => {
    context.settle(
      context.props.node.ask<boolean>((replyTo) => ({ kind: 'adopt', adoption, replyTo }), ADOPT_MS),
      () => ({ kind: 'adopted' }),
      (error) => ({ kind: 'adoptFailed', error }),
    );
  },
  write,
  send: ({ context }, { messages, to }) => context.props.link.send(to, messages),
  setPeers: ({ context }, { uris }) => context.props.link.setPeers(uris),
  join: ({ context }, { request, uri }) => {
    context.settle(
      join(context, uri, request),
      (reply) => ({ kind: 'joined', reply }),
      (error) => ({ kind: 'joinFailed', error }),
    );
  },
  announce: ({ context }, { request, uri }) => {
    context.settle(
      context.props.link.transport.request(uri, request, PEER_REQUEST_MS),
      () => ({ kind: 'announceAnswered', error: null }),
      (error) => ({ kind: 'announceAnswered', error }),
    );
  },
  askPledge,
  lookFor,
  desire: ({ context }, { desired }) => context.props.node.report({ kind: 'desire', desired }),
  giveUp: ({ context }, { error }) => {
    context.log.error(`this node gives up to join its cluster: ${error.detail}`);
    context.props.options.onGivenUp?.(error.detail);
  },
  retryLater: ({ context }, { delayMs }) => context.after(delayMs, { kind: 'retry' }),
  tickLater: ({ context, refs }) => {
    // Timed from when the last tick was handled: a process that stalled for a while takes one tick, not all that it missed.
    refs.cancelTick();
    refs.cancelTick = context.after(context.props.options.tickMs, { kind: 'tick' });
    reportDeadReplicas(context);
    if (context.props.isDiskFull()) context.report({ kind: 'diskFilled' });
  },
  log: ({ context }, { level, text }) => context.log[level](text),
  // The message that brought `replyTo` tells its type.
  reply: ({ context }, { answer, replyTo }) => context.reply(replyTo as ReplyTo<boolean | PeerReply>, answer),
  refuse: ({ context }, { error, replyTo }) => context.fail(replyTo, error),
};

function write({ context, refs }: ConsensusShell, effect: EffectOf<'write'>): void {
  const load = refs.loads;
  context.props.options.store.write(effect.write).then(
    () => {
      if (load === refs.loads) context.report({ kind: 'written', number: effect.number });
    },
    (error: unknown) => {
      if (load !== refs.loads) return;
      const facts = error instanceof TroupeError ? error : new TroupeError('storage', String(error));
      context.report({ kind: 'writeFailed', error: { code: facts.code, detail: facts.detail } });
    },
  );
}

function lookFor({ context, refs }: ConsensusShell, { contact, peer, untilMs, uri }: EffectOf<'lookFor'>): void {
  const isInTime = () => context.clock.monotonicMs() <= untilMs;
  if (refs.looking || !isInTime()) return;
  refs.looking = true;
  const done = (refuses: boolean) => {
    refs.looking = false;
    if (refuses && isInTime()) context.report({ kind: 'ended', peer, contact });
  };
  context.props.link.transport.refuses(uri).then(done, () => done(false));
}

/** Asks for a pledge. A failure is ignored: the pledge is asked for again before it ends. */
function askPledge({ context }: ConsensusShell, { contact, peer, request, uri }: EffectOf<'askPledge'>): void {
  const untilMs = context.clock.monotonicMs() + COUNTED_ON_MS;
  context.props.link.transport.request(uri, request, COUNTED_ON_MS).then(
    (reply) => {
      if (reply.kind === 'pledged' && reply.granted) context.report({ kind: 'pledged', peer, uri, contact, untilMs });
    },
    () => {},
  );
}

function reportDeadReplicas(context: ConsensusContext): void {
  const replicas = context.props.deadReplicas();
  if (replicas.length > 0) context.report({ kind: 'replicasDied', replicas });
}

async function join(context: ConsensusContext, uri: string, request: PeerRequest): Promise<Extract<PeerReply, { kind: 'joined' }>> {
  const reply = await context.props.link.transport.request(uri, request, JOIN_MS);
  if (reply.kind !== 'joined')
    throw new TroupeError('internal', `peer ${uri} answered the request to join with an unexpected \`${reply.kind}\``);
  return reply;
}

function summarize(message: ConsensusMessage): string {
  switch (message.kind) {
    case 'received':
      return `${message.from}: ${message.messages.map((each) => (each.kind === 'raft' ? each.message.kind : each.kind)).join(' ')}`;
    case 'connectionChanged':
      return `${message.peer} ${message.connected ? 'connected' : 'gone'}`;
    case 'requested':
      return `${message.request.kind} from ${message.address}`;
    case 'replicasDied':
      return `${message.replicas.length} replicas`;
    case 'submit':
      return message.submission.kind === 'operation' ? message.submission.operation.kind : message.submission.kind;
    case 'written':
      return String(message.number);
    case 'carriedOut':
      return `${message.index}, ${message.failures.length} failures`;
    case 'removePeer':
      return String(message.peerId);
    case 'peerUnreachable':
    case 'pledged':
    case 'ended':
      return String(message.peer);
    default:
      return 'error' in message && message.error !== null ? message.error.detail : '';
  }
}
