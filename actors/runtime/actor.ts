/**
 * The shell around every actor: it hands messages to `step`, performs the effects, counts, records, and supervises.
 *
 * - A throw in `start`, `step` or `perform` is a crash, and so is a broken invariant of what an effect began. The actor's life ends with
 *   its timers and children, and a new one starts after a delay (`restart.ts`). Messages that wait stay in the mailbox. Requests it had
 *   taken end with an error.
 * - Too many crashes and the actor is stopped and its parent decides (`childFailed`), or crashes in turn; above the root, `onGaveUp`.
 * - What a life began and what comes back after its end is dropped, so a new life never meets its predecessor's answers.
 */

import { type ErrorFacts, errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { BrokenInvariant } from '../../protocols/invariant.js';
import type { Tagged } from '../../protocols/machine.js';
import { type AskHolder, Asks } from './asks.js';
import { type ActorContext, type ActorRef, type Behaviour, NotTaken, type ReplyTo, type TellResult } from './behaviour.js';
import type { Cancel, Mailbox, RuntimePorts } from './ports.js';
import { FlightRecorder } from './recorder.js';
import { type CrashHistory, DEFAULT_RESTART_POLICY, decideRestart, jittered, NO_CRASHES, type RestartPolicy } from './restart.js';
import type { ActorTelemetry } from './telemetry.js';

export interface ActorSystemOptions {
  /** Messages that may wait in a mailbox, unless the behaviour says otherwise. */
  readonly mailboxCapacity: number;
  /** Messages the flight recorder of each actor keeps. */
  readonly recorderCapacity: number;
  readonly restart: RestartPolicy;
}

const DEFAULT_OPTIONS: ActorSystemOptions = { mailboxCapacity: 1024, recorderCapacity: 32, restart: DEFAULT_RESTART_POLICY };

/** Tells a busy caller when another try is worth it. */
const BUSY_RETRY_MS = 1000;

/** What has become of an actor by a message, its start, a crash or its end. */
export interface ActorEvent {
  readonly path: string;
  readonly kind: string;
  /** As in `ActorTelemetry`; null: it is stopped. */
  readonly state: string | null;
  /** Whether the state has another tag than before. */
  readonly isChanged: boolean;
  readonly restarts: number;
  /** See `ActorTelemetry.lastError`. */
  readonly error: string | null;
}

/** A tree of actors. */
export class ActorSystem {
  readonly options: ActorSystemOptions;
  readonly asks: Asks;
  readonly #roots = new Map<string, AnyActor>();
  /** Null: nobody follows. */
  follower: ((event: ActorEvent) => void) | null = null;

  constructor(
    readonly ports: RuntimePorts,
    options: Partial<ActorSystemOptions> = {},
  ) {
    this.options = { ...DEFAULT_OPTIONS, ...options };
    this.asks = new Asks(ports.timers);
  }

  /** Starts a root actor. `onGaveUp` hears when it crashed too often; it is stopped then. */
  spawn<Props, State extends Tagged, Message extends Tagged, Effect extends Tagged>(
    behaviour: Behaviour<Props, State, Message, Effect>,
    name: string,
    props: Props,
    onGaveUp: (error: ErrorFacts) => void,
  ): ActorRef<Message> {
    if (this.#roots.has(name)) throw new Error(`There is an actor ${name} already`);
    const parent: Parent = {
      path: '',
      mailbox: null,
      childStopped: () => this.#roots.delete(name),
      childGaveUp: (_name, error) => onGaveUp(error),
    };
    const actor = new Actor(this, parent, behaviour, name, props);
    this.#roots.set(name, actor as unknown as AnyActor);
    actor.begin();
    return actor;
  }

  /** Calls the follower, who must not throw, after each message that an actor has handled, until it is cancelled. There is one at most. */
  follow(follower: (event: ActorEvent) => void): Cancel {
    this.follower = follower;
    return () => {
      this.follower = null;
    };
  }

  tree(): readonly ActorTelemetry[] {
    return [...this.#roots.values()].map((root) => root.telemetry());
  }

  /** Stops every actor, children with their parents. */
  stop(): void {
    for (const root of [...this.#roots.values()]) root.stop();
    this.ports.mailboxes.close();
  }
}

interface Parent {
  readonly path: string;
  readonly mailbox: Mailbox | null;
  childStopped(name: string): void;
  childGaveUp(name: string, error: ErrorFacts): void;
}

/** An actor whose types don't matter to the one who holds it. */
interface AnyActor {
  telemetry(): ActorTelemetry;
  stop(): void;
}

interface Envelope<Message> {
  readonly message: Message;
  /** The request it carries, 0 for none. */
  readonly replyTo: number;
}

/** One life of an actor, from its start to a crash or stop. */
interface Life<Props, Message> {
  readonly context: ActorContext<Props, Message>;
  readonly startedMs: number;
  ended: boolean;
  stopWanted: boolean;
  readonly timers: Set<Cancel>;
  readonly cleanups: Set<() => void>;
}

class Actor<Props, State extends Tagged, Message extends Tagged, Effect extends Tagged> implements ActorRef<Message>, Parent {
  readonly path: string;
  readonly mailbox: Mailbox;
  /** Requests in the mailbox. */
  readonly #queued: AskHolder = { asks: null };
  /** Requests that `step` has seen and nobody has answered. */
  readonly #taken: AskHolder = { asks: null };
  readonly #children = new Map<string, AnyActor>();
  readonly #recorder: FlightRecorder;
  readonly #capacity: number;
  #life: Life<Props, Message> | null = null;
  #state: State | null = null;
  #stopped = false;
  #handling = false;
  /** Messages that arrived while the actor waits for its restart. */
  #held: Envelope<Message>[] = [];
  #cancelRestart: Cancel | null = null;
  #crashes: CrashHistory = NO_CRASHES;
  #depth = 0;
  #processed = 0;
  #restarts = 0;
  #busyRefusals = 0;
  #lastError: { message: string; timeMs: number } | null = null;

  constructor(
    readonly system: ActorSystem,
    readonly parent: Parent,
    readonly behaviour: Behaviour<Props, State, Message, Effect>,
    readonly name: string,
    readonly props: Props,
  ) {
    this.path = `${parent.path}/${name}`;
    this.#capacity = behaviour.mailboxCapacity ?? system.options.mailboxCapacity;
    this.#recorder = new FlightRecorder(system.options.recorderCapacity);
    this.mailbox = system.ports.mailboxes.open(parent.mailbox, name, (item) => this.#receive(item as Envelope<Message>));
  }

  tell(message: Message): TellResult {
    return this.#accept({ message, replyTo: 0 }, true);
  }

  report(message: Message): TellResult {
    return this.#accept({ message, replyTo: 0 }, false);
  }

  ask<Answer>(make: (replyTo: ReplyTo<Answer>) => Message, timeoutMs: number): Promise<Answer> {
    const onTimeout = () => new TroupeError('timeout', `${this.path} did not answer within ${timeoutMs} ms`);
    const { replyTo, answer } = this.system.asks.open<Answer>(this.#queued, timeoutMs, onTimeout);
    const result = this.#accept({ message: make(replyTo), replyTo }, true);
    if (result !== 'sent') this.system.asks.reject(replyTo, this.#refusal(result));
    return answer;
  }

  /** Takes over a request of another actor. */
  takeOver(message: Message, replyTo: number): void {
    if (!this.system.asks.handOver(replyTo, this.#queued)) return;
    const result = this.#accept({ message, replyTo }, true);
    if (result !== 'sent') this.system.asks.reject(replyTo, this.#refusal(result));
  }

  /** Begins a life: the first one, and another after each crash. */
  begin(): void {
    const life = this.#newLife();
    this.#life = life;
    this.#guarded(null, () => {
      const { state, effects } = this.behaviour.start(this.props);
      this.#state = state;
      this.#perform(effects, life);
    });
    this.#tell(true);
    this.#drainHeld();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#endLife();
    this.#cancelRestart?.();
    this.mailbox.close();
    this.#held = [];
    this.#depth = 0;
    this.system.asks.rejectAll(this.#queued, () => new NotTaken(this.path));
    this.system.asks.rejectAll(this.#taken, () => new TroupeError('unavailable', `${this.path} is stopped`, { reason: 'actorCrashed' }));
    this.parent.childStopped(this.name);
    this.#tell(true);
  }

  childStopped(name: string): void {
    this.#children.delete(name);
  }

  childGaveUp(name: string, error: ErrorFacts): void {
    if (this.#stopped || this.#life === null) return;
    const message = this.behaviour.childFailed?.(name, error) ?? null;
    if (message === null) this.#crash(new TroupeError(error.code, `child ${name}: ${error.detail}`), null);
    else this.report(message);
  }

  telemetry(): ActorTelemetry {
    const nowMs = this.system.ports.clock.nowMs();
    return {
      path: this.path,
      kind: this.behaviour.kind,
      state: this.#stateName(),
      facts: this.#state === null ? {} : (this.behaviour.facts?.(this.props, this.#state) ?? {}),
      mailbox: { depth: this.#depth, capacity: this.#capacity },
      processed: this.#processed,
      restarts: this.#restarts,
      busyRefusals: this.#busyRefusals,
      lastError: this.#lastError,
      uptimeMs: this.#life === null ? 0 : Math.max(0, nowMs - this.#life.startedMs),
      recent: this.#recorder.records(),
      children: { [Symbol.iterator]: () => telemetryOf(this.#children.values()) },
    };
  }

  #accept(envelope: Envelope<Message>, bounded: boolean): TellResult {
    if (this.#stopped) return 'stopped';
    if (bounded && this.#depth >= this.#capacity) {
      this.#busyRefusals += 1;
      return 'busy';
    }
    this.#depth += 1;
    this.mailbox.post(envelope);
    return 'sent';
  }

  #refusal(result: 'busy' | 'stopped'): TroupeError {
    if (result === 'stopped') return new NotTaken(this.path);
    return new TroupeError('busy', `${this.#depth} messages wait for ${this.path}`, { retryAfterMs: BUSY_RETRY_MS });
  }

  #receive(envelope: Envelope<Message>): void {
    if (this.#stopped) return;
    // While messages are held, later ones queue behind them: order is kept.
    if (this.#life === null || this.#held.length > 0) this.#held.push(envelope);
    else this.#handle(envelope);
  }

  #drainHeld(): void {
    while (this.#life !== null && this.#held.length > 0) this.#handle(this.#held.shift() as Envelope<Message>);
  }

  #handle(envelope: Envelope<Message>): void {
    const life = this.#life as Life<Props, Message>;
    this.#depth -= 1;
    // A caller that waits no longer does not make the message void: a write it sent may still be wanted.
    if (envelope.replyTo !== 0) this.system.asks.handOver(envelope.replyTo, this.#taken);
    const before = this.#state?.kind;
    this.#guarded(envelope, () => {
      const { state, effects } = this.behaviour.step(this.#state as State, envelope.message);
      this.#state = state;
      this.#processed += 1;
      this.#record(envelope.message, state.kind);
      this.#perform(effects, life);
    });
    // A crash and the end are told already.
    if (this.#life === life && !this.#stopped) this.#tell(this.#state?.kind !== before);
  }

  #tell(isChanged: boolean): void {
    const { follower } = this.system;
    if (follower === null) return;
    const state = this.#stopped ? null : this.#stateName();
    follower({
      path: this.path,
      kind: this.behaviour.kind,
      state,
      isChanged,
      restarts: this.#restarts,
      error: this.#lastError?.message ?? null,
    });
  }

  #stateName(): string {
    return this.#life === null ? 'Restarting' : (this.#state?.kind ?? 'Starting');
  }

  #perform(effects: readonly Effect[], life: Life<Props, Message>): void {
    for (const effect of effects) {
      // An effect may have stopped the actor.
      if (life.ended) return;
      this.behaviour.perform(effect, life.context);
    }
  }

  /** Runs what may crash, and afterwards a stop that was asked for in it. */
  #guarded(envelope: Envelope<Message> | null, run: () => void): void {
    const life = this.#life;
    this.#handling = true;
    try {
      run();
    } catch (error) {
      if (!this.#stopped) this.#crash(error, envelope);
    }
    this.#handling = false;
    if (life?.stopWanted === true && !life.ended) this.stop();
  }

  #record(message: Message, state: string): void {
    const summary = this.behaviour.summarize?.(message) ?? '';
    this.#recorder.add({ timeMs: this.system.ports.clock.dateMs(), message: message.kind, summary, state });
  }

  #crash(error: unknown, envelope: Envelope<Message> | null): void {
    const { clock, log, random, timers } = this.system.ports;
    const nowMs = clock.nowMs();
    const facts = errorFacts(error);
    this.#lastError = { message: facts.detail, timeMs: clock.dateMs() };
    this.#recorder.add({ timeMs: clock.dateMs(), message: envelope?.message.kind ?? 'start', summary: facts.detail, state: 'crashed' });
    this.#endLife();
    const { history, decision } = decideRestart(this.#crashes, nowMs, this.system.options.restart);
    this.#crashes = history;
    if (envelope !== null)
      this.system.asks.reject(envelope.replyTo, new TroupeError('internal', facts.detail, { cause: error, reason: 'actorCrashed' }));
    log.error(`${this.path} crashed: ${facts.detail}`, { stack: error instanceof Error ? error.stack : undefined, next: decision.kind });
    if (decision.kind === 'escalate') {
      this.stop();
      this.parent.childGaveUp(this.name, facts);
      return;
    }
    this.#tell(true);
    const delayMs = jittered(decision.delayMs, random.next());
    this.system.asks.rejectAll(
      this.#taken,
      () =>
        new TroupeError('unavailable', `${this.path} restarts after an error: ${facts.detail}`, {
          retryAfterMs: delayMs,
          reason: 'actorCrashed',
        }),
    );
    this.#cancelRestart = timers.after(delayMs, () => {
      this.#cancelRestart = null;
      this.#restarts += 1;
      this.begin();
    });
  }

  #endLife(): void {
    const life = this.#life;
    if (life === null) return;
    this.#life = null;
    life.ended = true;
    for (const cancel of life.timers) cancel();
    for (const cleanup of life.cleanups) this.#cleanUp(cleanup);
    for (const child of [...this.#children.values()]) child.stop();
  }

  #cleanUp(cleanup: () => void): void {
    try {
      cleanup();
    } catch (error) {
      this.system.ports.log.error(`${this.path}: cleaning up failed: ${errorFacts(error).detail}`);
    }
  }

  #newLife(): Life<Props, Message> {
    const { clock, random, log } = this.system.ports;
    const asks = this.system.asks;
    const report = (message: Message) => {
      if (!life.ended) this.report(message);
    };
    const context: ActorContext<Props, Message> = {
      props: this.props,
      path: this.path,
      self: this,
      clock,
      random,
      log,
      report,
      settle: (promise, onValue, onError) => {
        promise.then(
          (value) => report(onValue(value)),
          (error) => {
            if (!(error instanceof BrokenInvariant)) report(onError(errorFacts(error)));
            else if (!life.ended) this.#crash(error, null);
          },
        );
      },
      after: (delayMs, message) => this.#after(life, delayMs, message),
      reply: (replyTo, answer) => asks.resolve(replyTo, answer),
      fail: (replyTo, error) => asks.reject(replyTo, asError(error)),
      forward: (target, message, replyTo) => {
        if (target instanceof Actor) target.takeOver(message, replyTo);
        else target.tell(message);
      },
      spawn: (behaviour, name, props) => this.#spawnChild(life, behaviour, name, props),
      stopChild: (name) => this.#children.get(name)?.stop(),
      stop: () => {
        if (life.ended) return;
        if (this.#handling) life.stopWanted = true;
        else this.stop();
      },
      onEnd: (cleanup) => {
        if (life.ended) cleanup();
        else life.cleanups.add(cleanup);
        return () => life.cleanups.delete(cleanup);
      },
    };
    const life: Life<Props, Message> = {
      context,
      startedMs: clock.nowMs(),
      ended: false,
      stopWanted: false,
      timers: new Set(),
      cleanups: new Set(),
    };
    return life;
  }

  #after(life: Life<Props, Message>, delayMs: number, message: Message): Cancel {
    const cancelTimer = this.system.ports.timers.after(delayMs, () => {
      life.timers.delete(cancel);
      life.context.report(message);
    });
    const cancel = () => {
      life.timers.delete(cancel);
      cancelTimer();
    };
    life.timers.add(cancel);
    return cancel;
  }

  #spawnChild<ChildProps, ChildState extends Tagged, ChildMessage extends Tagged, ChildEffect extends Tagged>(
    life: Life<Props, Message>,
    behaviour: Behaviour<ChildProps, ChildState, ChildMessage, ChildEffect>,
    name: string,
    props: ChildProps,
  ): ActorRef<ChildMessage> {
    if (life.ended) throw new Error(`${this.path} has ended and starts no ${name}`);
    if (this.#children.has(name)) throw new Error(`${this.path} has a child ${name} already`);
    const child = new Actor(this.system, this, behaviour, name, props);
    this.#children.set(name, child as unknown as AnyActor);
    child.begin();
    return child;
  }
}

function asError(error: unknown): Error {
  if (error instanceof Error) return error;
  if (isErrorFacts(error)) return errorFromFacts(error);
  return new TroupeError('internal', String(error));
}

function isErrorFacts(error: unknown): error is ErrorFacts {
  return typeof error === 'object' && error !== null && 'code' in error && 'detail' in error;
}

function* telemetryOf(actors: Iterable<AnyActor>): Generator<ActorTelemetry> {
  for (const actor of actors) yield actor.telemetry();
}
