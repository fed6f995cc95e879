/** The consensus actor: a node's part in what its cluster agrees on. */

import type { PeerReply, PeerRequest } from '../../cluster/peer-messages.js';
import { step as raftStep } from '../../cluster/raft/step.js';
import { TroupeError } from '../../protocols/errors.js';
import type { LocalData } from '../context/desired.js';
import type { NodeMessage } from '../node/messages.js';
import { type ActorContext, type ActorRef, type Behaviour, type ReplyTo, type Step, unreachable } from '../runtime/behaviour.js';
import type { Cancel } from '../runtime/ports.js';
import { type ClusterOptions, TRANSFER_LIMITS } from './cluster-api.js';
import { JOIN_MS, PEER_REQUEST_MS } from './cluster-node.js';
import type { PeerLink } from './link.js';
import { COUNTED_ON_MS } from './membership/survivor.js';
import type { ConsensusEffect, ConsensusMessage, OwnReplica } from './messages.js';
import type { ConsensusState } from './state.js';
import { startConsensus, stepConsensus } from './step.js';
import type { ConsensusView } from './view.js';

export interface ConsensusProps {
  readonly options: ClusterOptions;
  readonly view: ConsensusView;
  readonly link: PeerLink;
  readonly node: ActorRef<NodeMessage>;
  /** Replicas of this node that do not serve. */
  readonly deadReplicas: () => readonly OwnReplica[];
  readonly local: LocalData;
}

type ConsensusContext = ActorContext<ConsensusProps, ConsensusMessage>;
type EffectOf<Kind extends ConsensusEffect['kind']> = Extract<ConsensusEffect, { kind: Kind }>;

/** Messages of peers beyond it are dropped: Raft says them again. */
const MAILBOX_CAPACITY = 4096;
/** Collections are read before they are adopted. */
const ADOPT_MS = 0x7fff_ffff;

export function consensusBehaviour(): Behaviour<ConsensusProps, ConsensusState, ConsensusMessage, ConsensusEffect> {
  let view: ConsensusView;
  /** What an earlier load of the log began is of no interest any more. */
  let loads = 0;
  let cancelTick: Cancel = () => {};
  let looking = false;

  function shown(step: Step<ConsensusState, ConsensusEffect>): Step<ConsensusState, ConsensusEffect> {
    view.show(step.state);
    return step;
  }

  function perform(effect: ConsensusEffect, context: ConsensusContext): void {
    const { link, node, options } = context.props;
    switch (effect.kind) {
      case 'load':
        view.actor = context.self;
        loads += 1;
        context.settle(
          options.store.load(),
          (stored) => ({ kind: 'loaded', stored, drawn: link.drawn(context.random, context.clock) }),
          (error) => ({ kind: 'loadFailed', error }),
        );
        break;
      case 'listen':
        link.listen(effect.peerId).catch((error: unknown) => {
          const detail = `the internal port cannot be used: ${error instanceof Error ? error.message : String(error)}`;
          context.report({ kind: 'listenFailed', error: { code: 'unavailable', detail } });
        });
        break;
      case 'adopt':
        context.settle(
          node.ask<boolean>((replyTo) => ({ kind: 'adopt', adoption: effect.adoption, replyTo }), ADOPT_MS),
          () => ({ kind: 'adopted' }),
          (error) => ({ kind: 'adoptFailed', error }),
        );
        break;
      case 'write':
        write(effect, context);
        break;
      case 'send':
        link.send(effect.to, effect.messages);
        break;
      case 'setPeers':
        link.setPeers(effect.uris);
        break;
      case 'join':
        context.settle(
          join(context, effect.uri, effect.request),
          (reply) => ({ kind: 'joined', reply }),
          (error) => ({ kind: 'joinFailed', error }),
        );
        break;
      case 'announce':
        context.settle(
          link.transport.request(effect.uri, effect.request, PEER_REQUEST_MS),
          () => ({ kind: 'announceAnswered', error: null }),
          (error) => ({ kind: 'announceAnswered', error }),
        );
        break;
      case 'askPledge':
        askPledge(effect, context);
        break;
      case 'lookFor':
        if (!looking) lookFor(effect, context);
        break;
      case 'desire':
        node.report({ kind: 'desire', desired: effect.desired });
        break;
      case 'retryLater':
        context.after(effect.delayMs, { kind: 'retry' });
        break;
      case 'tickLater':
        // From when the last one was worked on: a process that stalled for a while takes one tick, not all that it missed.
        cancelTick();
        cancelTick = context.after(options.tickMs, { kind: 'tick' });
        reportDeadReplicas(context);
        break;
      case 'log':
        context.log[effect.level](effect.text);
        break;
      case 'reply':
        // Its type stands in the message that brought it.
        context.reply(effect.replyTo as ReplyTo<boolean | PeerReply>, effect.answer);
        break;
      case 'refuse':
        context.fail(effect.replyTo, effect.error);
        break;
      default:
        unreachable(effect);
    }
  }

  function write(effect: EffectOf<'write'>, context: ConsensusContext): void {
    const load = loads;
    context.props.options.store.write(effect.write).then(
      () => {
        if (load === loads) context.report({ kind: 'written', number: effect.number });
      },
      (error: unknown) => {
        if (load !== loads) return;
        const facts = error instanceof TroupeError ? error : new TroupeError('storage', String(error));
        context.report({ kind: 'writeFailed', error: { code: facts.code, detail: facts.detail } });
      },
    );
  }

  function lookFor({ contact, peer, untilMs, uri }: EffectOf<'lookFor'>, context: ConsensusContext): void {
    const isInTime = () => context.clock.monotonicMs() <= untilMs;
    if (!isInTime()) return;
    looking = true;
    const done = (refuses: boolean) => {
      looking = false;
      if (refuses && isInTime()) context.report({ kind: 'ended', peer, contact });
    };
    context.props.link.transport.refuses(uri).then(done, () => done(false));
  }

  return {
    kind: 'consensus',
    mailboxCapacity: MAILBOX_CAPACITY,
    start: (props) => {
      view = props.view;
      cancelTick = () => {};
      const { bootstrap, compactEntries, port, tickMs, uri, version } = props.options;
      const { listens = false, survives = true, transferLimits = TRANSFER_LIMITS, transferMethod } = props.options;
      const step = props.options.raftStep ?? raftStep;
      const figures = {
        port,
        version,
        tickMs,
        compactEntries,
        listens,
        transferLimits,
        transferMethod: transferMethod ?? 'stream_records',
        survives,
      };
      return shown(startConsensus({ uri, bootstrap, ...figures, raftStep: step, local: props.local }));
    },
    step: (state, message) => shown(stepConsensus(state, message)),
    perform,
    summarize,
  };
}

/** Nobody waits for it: it is asked again before it is over. */
function askPledge({ contact, peer, request, uri }: EffectOf<'askPledge'>, context: ConsensusContext): void {
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
  if (reply.kind !== 'joined') throw new TroupeError('internal', `${uri} answered a wish to join with «${reply.kind}»`);
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
    case 'peerUnreachable':
    case 'pledged':
    case 'ended':
      return String('peerId' in message ? message.peerId : message.peer);
    default:
      return 'error' in message && message.error !== null ? message.error.detail : '';
  }
}
