import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ActorSystem, type ActorSystemOptions } from '../../../actors/runtime/actor.js';
import { type ActorContext, type ActorRef, type Behaviour, become, NotTaken, type ReplyTo } from '../../../actors/runtime/behaviour.js';
import type { ActorTelemetry } from '../../../actors/runtime/telemetry.js';
import type { ErrorFacts, TroupeError } from '../../../protocols/errors.js';
import { BrokenInvariant } from '../../../protocols/invariant.js';
import { FakeWorld } from '../fake-world.js';

type Message =
  | { kind: 'add'; amount: number }
  | { kind: 'read'; replyTo: ReplyTo<number> }
  | { kind: 'swallow'; replyTo: ReplyTo<number> }
  | { kind: 'fail'; replyTo: ReplyTo<number> }
  | { kind: 'explode'; replyTo?: ReplyTo<number> }
  | { kind: 'explodeInPerform' }
  | { kind: 'later'; delayMs: number }
  | { kind: 'spawn'; name: string }
  | { kind: 'tellChild'; name: string; message: Message }
  | { kind: 'pass'; name: string; replyTo: ReplyTo<number> }
  | { kind: 'stop' }
  | { kind: 'childGone'; name: string; error: ErrorFacts };

type Effect = { kind: 'do'; run: (context: Context) => void };
type State = { kind: 'Counting' | 'Stopping'; count: number };
type Context = ActorContext<Props, Message>;

interface Props {
  readonly children: Map<string, ActorRef<Message>>;
  readonly started: string[];
  readonly ended: string[];
  readonly failedChildren?: string[];
}

const NO_FAILURES: Props = { children: new Map(), started: [], ended: [] };

function counter(
  options: { childFailed?: boolean; capacity?: number; explodeAtStart?: () => boolean } = {},
): Behaviour<Props, State, Message, Effect> {
  return {
    kind: 'counter',
    ...(options.capacity === undefined ? {} : { mailboxCapacity: options.capacity }),
    start: (props) => {
      if (options.explodeAtStart?.()) throw new Error('no start');
      props.started.push('start');
      return become(
        { kind: 'Counting', count: 0 },
        act((context) => context.onEnd(() => props.ended.push(context.path))),
      );
    },
    step: (state, message) => {
      switch (message.kind) {
        case 'add':
          return become({ ...state, count: state.count + message.amount });
        case 'read':
          return become(
            state,
            act((context) => context.reply(message.replyTo, state.count)),
          );
        case 'swallow':
          return become(state);
        case 'fail':
          return become(
            state,
            act((context) => context.fail(message.replyTo, { code: 'wrongInput', detail: 'not this' })),
          );
        case 'explode':
          throw new Error('boom');
        case 'explodeInPerform':
          return become(
            state,
            act(() => {
              throw new Error('boom while acting');
            }),
          );
        case 'later':
          return become(
            state,
            act((context) => context.after(message.delayMs, { kind: 'add', amount: 100 })),
          );
        case 'spawn':
          return become(
            state,
            act((context) => context.props.children.set(message.name, context.spawn(counter(), message.name, context.props))),
          );
        case 'tellChild':
          return become(
            state,
            act((context) => context.props.children.get(message.name)?.tell(message.message)),
          );
        case 'pass':
          return become(
            state,
            act((context) =>
              context.forward(
                context.props.children.get(message.name) as ActorRef<Message>,
                { kind: 'read', replyTo: message.replyTo },
                message.replyTo,
              ),
            ),
          );
        case 'stop':
          return become(
            { ...state, kind: 'Stopping' },
            act((context) => context.stop()),
          );
        case 'childGone':
          return become(
            state,
            act((context) => context.props.failedChildren?.push(`${message.name}: ${message.error.detail}`)),
          );
        default:
          throw new Error(`unknown ${JSON.stringify(message satisfies never)}`);
      }
    },
    perform: (effect, context) => effect.run(context),
    summarize: (message) => (message.kind === 'add' ? `+${message.amount}` : ''),
    ...(options.childFailed ? { childFailed: (name: string, error: ErrorFacts): Message => ({ kind: 'childGone', name, error }) } : {}),
  };
}

function act(run: (context: Context) => void): Effect {
  return { kind: 'do', run };
}

function setUp(options: { system?: Partial<ActorSystemOptions>; behaviour?: Parameters<typeof counter>[0]; props?: Props } = {}) {
  const world = new FakeWorld();
  const system = new ActorSystem(world.ports, options.system);
  const gaveUp: ErrorFacts[] = [];
  const props = options.props ?? { ...NO_FAILURES, children: new Map(), started: [], ended: [], failedChildren: [] };
  const actor = system.spawn(counter(options.behaviour), 'top', props, (error) => gaveUp.push(error));
  return { world, system, actor, props, gaveUp };
}

function tree(system: ActorSystem): ActorTelemetry {
  return system.tree()[0] as ActorTelemetry;
}

const read = (replyTo: ReplyTo<number>): Message => ({ kind: 'read', replyTo });

test('an actor takes its messages in order and answers', async () => {
  const { world, actor } = setUp();
  actor.tell({ kind: 'add', amount: 2 });
  actor.tell({ kind: 'add', amount: 3 });
  const answer = actor.ask(read, 1000);
  world.deliver();
  assert.equal(await answer, 5);
});

test('a message is never handled inside the call that sends it', () => {
  const { system, actor } = setUp();
  actor.tell({ kind: 'add', amount: 1 });
  assert.equal(tree(system).processed, 0);
  assert.equal(tree(system).mailbox.depth, 1);
});

test('a crashed actor starts again after the delay, and waiting messages are kept', async () => {
  const { world, system, actor, props } = setUp();
  actor.tell({ kind: 'add', amount: 7 });
  actor.tell({ kind: 'explode' });
  actor.tell({ kind: 'add', amount: 1 });
  world.deliver();
  assert.equal(tree(system).state, 'Restarting');
  assert.equal(tree(system).mailbox.depth, 1);
  world.advance(99);
  assert.equal(tree(system).state, 'Restarting');
  world.advance(1);
  assert.equal(tree(system).state, 'Counting');
  assert.equal(tree(system).restarts, 1);
  assert.deepEqual(props.started, ['start', 'start']);
  const answer = actor.ask(read, 1000);
  world.deliver();
  // The state is new; what waited has been handled by it.
  assert.equal(await answer, 1);
});

test('a crash in perform is a crash of the actor', () => {
  const { world, system, actor } = setUp();
  actor.tell({ kind: 'explodeInPerform' });
  world.deliver();
  assert.equal(tree(system).state, 'Restarting');
  assert.deepEqual(tree(system).lastError, { message: 'boom while acting', timeMs: world.nowMs });
});

test('a crash in start is a crash of the actor', () => {
  let broken = true;
  const { world, system } = setUp({ behaviour: { explodeAtStart: () => broken } });
  assert.equal(tree(system).state, 'Restarting');
  broken = false;
  world.advance(100);
  assert.equal(tree(system).state, 'Counting');
});

test('the delay doubles with each crash up to its bound, and starts again after calm', () => {
  const { world, system, actor } = setUp({
    system: { restart: { delayMinMs: 100, delayMaxMs: 400, calmMs: 10_000, crashesMax: 100, windowMs: 1e9 } },
  });
  for (const delayMs of [100, 200, 400, 400]) {
    actor.tell({ kind: 'explode' });
    world.advance(delayMs - 1);
    assert.equal(tree(system).state, 'Restarting', `${delayMs}`);
    world.advance(1);
    assert.equal(tree(system).state, 'Counting', `${delayMs}`);
  }
  world.advance(10_400);
  actor.tell({ kind: 'explode' });
  world.advance(100);
  assert.equal(tree(system).state, 'Counting');
});

test('after too many crashes within the window the root gives up', () => {
  const { world, system, actor, gaveUp } = setUp({
    system: { restart: { delayMinMs: 10, delayMaxMs: 10, calmMs: 1000, crashesMax: 3, windowMs: 60_000 } },
  });
  for (let crash = 0; crash < 3; crash++) {
    actor.tell({ kind: 'explode' });
    world.advance(10);
  }
  assert.deepEqual(gaveUp, [{ code: 'internal', detail: 'boom' }]);
  assert.deepEqual(system.tree(), []);
  assert.equal(actor.tell({ kind: 'add', amount: 1 }), 'stopped');
});

const QUICK = { restart: { delayMinMs: 10, delayMaxMs: 10, calmMs: 1000, crashesMax: 2, windowMs: 60_000 } };

test('a parent that takes it is told of a child that gave up, and goes on', () => {
  const { world, system, actor, props } = setUp({ system: QUICK, behaviour: { childFailed: true } });
  actor.tell({ kind: 'spawn', name: 'child' });
  world.deliver();
  const child = props.children.get('child') as ActorRef<Message>;
  child.tell({ kind: 'explode' });
  world.advance(10);
  child.tell({ kind: 'explode' });
  world.advance(10);
  assert.deepEqual(props.failedChildren, ['child: boom']);
  assert.equal(tree(system).state, 'Counting');
  assert.deepEqual([...tree(system).children], []);
});

test('a parent that takes no such news crashes with its child', () => {
  const { world, system, actor, props } = setUp({ system: QUICK });
  actor.tell({ kind: 'spawn', name: 'child' });
  world.deliver();
  const child = props.children.get('child') as ActorRef<Message>;
  child.tell({ kind: 'explode' });
  world.advance(10);
  child.tell({ kind: 'explode' });
  world.deliver();
  assert.equal(tree(system).state, 'Restarting');
  assert.equal(tree(system).lastError?.message, 'child child: boom');
});

test('children stop with their parent, and what they hold is cleaned up', () => {
  const { world, system, actor, props } = setUp();
  actor.tell({ kind: 'spawn', name: 'a' });
  actor.tell({ kind: 'spawn', name: 'b' });
  world.deliver();
  assert.deepEqual(
    [...tree(system).children].map((child) => child.path),
    ['/top/a', '/top/b'],
  );
  actor.tell({ kind: 'stop' });
  world.deliver();
  assert.deepEqual(system.tree(), []);
  assert.deepEqual(props.ended, ['/top', '/top/a', '/top/b']);
  assert.equal(props.children.get('a')?.tell({ kind: 'add', amount: 1 }), 'stopped');
});

test('children stop when their parent crashes', () => {
  const { world, system, actor, props } = setUp();
  actor.tell({ kind: 'spawn', name: 'a' });
  actor.tell({ kind: 'explode' });
  world.advance(1000);
  assert.equal(tree(system).state, 'Counting');
  assert.deepEqual([...tree(system).children], []);
  assert.equal(props.children.get('a')?.tell({ kind: 'add', amount: 1 }), 'stopped');
});

test('a timer of a life that has ended reports nothing to the next one', async () => {
  const { world, actor } = setUp();
  actor.tell({ kind: 'later', delayMs: 500 });
  actor.tell({ kind: 'explode' });
  world.advance(1000);
  const answer = actor.ask(read, 1000);
  world.deliver();
  assert.equal(await answer, 0);
  assert.equal(world.pendingTimers, 0);
});

test('a full mailbox refuses with busy, and counts it', async () => {
  const { world, system, actor } = setUp({ behaviour: { capacity: 2 } });
  assert.equal(actor.tell({ kind: 'add', amount: 1 }), 'sent');
  assert.equal(actor.tell({ kind: 'add', amount: 1 }), 'sent');
  assert.equal(actor.tell({ kind: 'add', amount: 1 }), 'busy');
  await assert.rejects(actor.ask(read, 1000), (error: TroupeError) => error.code === 'busy' && error.retryAfterMs !== undefined);
  assert.deepEqual(tree(system).mailbox, { depth: 2, capacity: 2 });
  assert.equal(tree(system).busyRefusals, 2);
  world.deliver();
  assert.equal(tree(system).mailbox.depth, 0);
  assert.equal(actor.tell({ kind: 'add', amount: 1 }), 'sent');
});

test('a report gets into a full mailbox', () => {
  const { system, actor } = setUp({ behaviour: { capacity: 1 } });
  actor.tell({ kind: 'add', amount: 1 });
  assert.equal(actor.report({ kind: 'add', amount: 1 }), 'sent');
  assert.equal(tree(system).mailbox.depth, 2);
});

test('messages that wait for a restart count towards the bound', () => {
  const { world, actor } = setUp({ behaviour: { capacity: 2 } });
  actor.tell({ kind: 'explode' });
  world.deliver();
  actor.tell({ kind: 'add', amount: 1 });
  world.deliver();
  actor.tell({ kind: 'add', amount: 1 });
  world.deliver();
  assert.equal(actor.tell({ kind: 'add', amount: 1 }), 'busy');
});

test('a request that nobody answers ends with timeout', async () => {
  const { world, actor } = setUp();
  const answer = actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'swallow', replyTo }), 250);
  const refused = assert.rejects(answer, { code: 'timeout', detail: '/top did not answer within 250 ms' });
  world.advance(250);
  await refused;
});

test('an actor can answer with an error of the catalogue', async () => {
  const { world, actor } = setUp();
  const answer = actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'fail', replyTo }), 250);
  const refused = assert.rejects(answer, { code: 'wrongInput', detail: 'not this' });
  world.deliver();
  await refused;
});

test('a request that crashes its actor ends with internal, those it had taken with unavailable', async () => {
  const { world, actor } = setUp();
  const taken = actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'swallow', replyTo }), 10_000);
  const crashing = actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'explode', replyTo }), 10_000);
  const refused = Promise.all([
    assert.rejects(taken, (error: TroupeError) => error.code === 'unavailable' && error.retryAfterMs === 100),
    assert.rejects(crashing, { code: 'internal', detail: 'boom' }),
  ]);
  world.deliver();
  await refused;
});

test('a request to a stopped actor, or waiting as it stops, ends with unavailable', async () => {
  const { world, actor } = setUp();
  actor.tell({ kind: 'stop' });
  const waiting = assert.rejects(actor.ask(read, 1000), { code: 'unavailable', detail: '/top is stopped' });
  world.deliver();
  await waiting;
  await assert.rejects(actor.ask(read, 1000), { code: 'unavailable', detail: '/top is stopped' });
});

test('a request that a stopping actor has not seen says so, one that it has seen does not', async () => {
  const { world, actor } = setUp();
  const outcome = (asked: Promise<number>) => asked.catch((error: unknown) => error instanceof NotTaken);
  const seen = outcome(actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'swallow', replyTo }), 1000));
  world.deliver();
  actor.tell({ kind: 'stop' });
  const unseen = outcome(actor.ask(read, 1000));
  world.deliver();
  assert.deepEqual(await Promise.all([seen, unseen, outcome(actor.ask(read, 1000))]), [false, true, true]);
});

test('a request that was handed on is answered by the other actor, and ends when that one stops', async () => {
  const { world, actor, props } = setUp();
  actor.tell({ kind: 'spawn', name: 'child' });
  actor.tell({ kind: 'tellChild', name: 'child', message: { kind: 'add', amount: 4 } });
  const answer = actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'pass', name: 'child', replyTo }), 1000);
  world.deliver();
  assert.equal(await answer, 4);
  props.children.get('child')?.tell({ kind: 'stop' });
  const refused = assert.rejects(
    actor.ask((replyTo: ReplyTo<number>) => ({ kind: 'pass', name: 'child', replyTo }), 1000),
    { code: 'unavailable', detail: '/top/child is stopped' },
  );
  world.deliver();
  await refused;
});

test('the flight recorder keeps the last messages only', () => {
  const { world, system, actor } = setUp({ system: { recorderCapacity: 3 } });
  for (let amount = 1; amount <= 5; amount++) actor.tell({ kind: 'add', amount });
  actor.tell({ kind: 'explode' });
  world.deliver();
  const shown = tree(system).recent.map((record) => `${record.message} ${record.summary} ${record.state}`);
  assert.deepEqual(shown, ['add +4 Counting', 'add +5 Counting', 'explode boom crashed']);
});

test('telemetry counts messages and tells the time since the last start', () => {
  const { world, system, actor } = setUp();
  actor.tell({ kind: 'add', amount: 1 });
  world.deliver();
  world.advance(5000);
  assert.equal(tree(system).uptimeMs, 5000);
  assert.equal(tree(system).processed, 1);
  actor.tell({ kind: 'explode' });
  world.advance(100);
  world.advance(40);
  assert.equal(tree(system).uptimeMs, 40);
  assert.equal(tree(system).kind, 'counter');
});

test('stopping the system stops everything', () => {
  const { world, system, actor, props } = setUp();
  actor.tell({ kind: 'spawn', name: 'child' });
  world.deliver();
  system.stop();
  assert.deepEqual(system.tree(), []);
  assert.equal(props.children.get('child')?.tell({ kind: 'add', amount: 1 }), 'stopped');
});

test('a promise that an effect began and that ends in a broken invariant is a crash, and no report of a fault', async () => {
  const world = new FakeWorld();
  const system = new ActorSystem(world.ports);
  const reported: ErrorFacts[] = [];
  const acts: Behaviour<null, { kind: 'Acting' }, { kind: 'act'; error: Error } | { kind: 'failed' }, { kind: 'run'; error: Error }> = {
    kind: 'acts',
    start: () => become({ kind: 'Acting' }),
    step: (state, message) => (message.kind === 'act' ? become(state, { kind: 'run', error: message.error }) : become(state)),
    perform: ({ error }, context) =>
      context.settle(
        Promise.reject(error),
        () => ({ kind: 'failed' }),
        (facts) => {
          reported.push(facts);
          return { kind: 'failed' };
        },
      ),
  };
  const actor = system.spawn(acts, 'top', null, () => {});
  const act = async (error: Error) => {
    actor.tell({ kind: 'act', error });
    world.deliver();
    await new Promise(setImmediate);
    return tree(system).state;
  };
  assert.equal(await act(new Error('the disk is full')), 'Acting');
  assert.equal(await act(new BrokenInvariant('Wal-W2', 'out of order')), 'Restarting');
  assert.deepEqual(
    reported.map(({ detail }) => detail),
    ['the disk is full'],
  );
  assert.match(tree(system).lastError?.message ?? '', /invariant Wal-W2 is broken: out of order/);
});

test('whoever follows hears of each message, of changed states, of crashes and of the end, and nothing after that', () => {
  const { world, system, actor } = setUp();
  const heard: string[] = [];
  const stop = system.follow(({ error, isChanged, path, state }) =>
    heard.push(`${path} ${state}${isChanged ? ' changed' : ''} ${error ?? ''}`),
  );
  actor.tell({ kind: 'add', amount: 1 });
  actor.tell({ kind: 'explode' });
  world.deliver();
  world.advance(1000);
  actor.tell({ kind: 'stop' });
  world.deliver();
  assert.deepEqual(heard.splice(0), [
    '/top Counting ',
    '/top Restarting changed boom',
    '/top Counting changed boom',
    '/top null changed boom',
  ]);
  stop();
  system.spawn(counter(), 'another', NO_FAILURES, () => {}).tell({ kind: 'add', amount: 1 });
  world.deliver();
  assert.deepEqual(heard, []);
});
