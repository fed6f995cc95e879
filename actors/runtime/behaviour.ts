/**
 * What an actor is made of: a pure start and step that decide, and a perform that acts. The shell (`actor.ts`) runs
 * them: step synchronously, then its effects in order; what an effect brought about comes back as a message.
 */

import { type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import type { Tagged } from '../../protocols/machine.js';
import type { Cancel, Log, MonotonicClock, Random } from './ports.js';

/** What a message led to. `state` is the very same object where there was nothing to do. */
export interface Step<State, Effect> {
  readonly state: State;
  readonly effects: readonly Effect[];
}

export interface Behaviour<Props, State extends Tagged, Message extends Tagged, Effect extends Tagged> {
  /** Name of this kind of actor: `replica`. */
  readonly kind: string;
  /** Messages that may wait unless the runtime's default fits; beyond it `tell` and `ask` answer «busy». */
  readonly mailboxCapacity?: number;
  /** First state and effects, also after a crash: what was known before it is gone. */
  start(props: Props): Step<State, Effect>;
  /** The next state and effects. No clock, no randomness, no IO. */
  step(state: State, message: Message): Step<State, Effect>;
  /** Begins one effect and returns at once; a throw is a crash of the actor. */
  perform(effect: Effect, context: ActorContext<Props, Message>): void;
  /** One short line about a message for the flight recorder, without contents of points. */
  summarize?(message: Message): string;
  /** What the tree of actors shows of it beside its state, by name: `{ replicaState: 'Partial' }`. */
  facts?(props: Props, state: State): Readonly<Record<string, string | number>>;
  /**
   * The message that tells this actor that a child crashed too often and is stopped. Without it
   * (or with null) the crash goes on: this actor crashes with it.
   */
  childFailed?(name: string, error: ErrorFacts): Message | null;
}

/** Names a caller that waits for an answer of this type. Only data: it may stand in messages and states. */
export type ReplyTo<Answer> = number & { readonly __answer?: (answer: Answer) => void };

export type TellResult = 'sent' | 'busy' | 'stopped';

/** The actor was stopped before it has seen the message: nothing was done. */
export class NotTaken extends TroupeError {
  constructor(path: string) {
    super('unavailable', `${path} is stopped`);
    this.name = 'NotTaken';
  }
}

/** The address of an actor. */
export interface ActorRef<Message> {
  readonly path: string;
  /** Puts a message into the mailbox, unless that is full or its actor is stopped. */
  tell(message: Message): TellResult;
  /**
   * Puts a message into the mailbox, also a full one: for what an effect brought about and for what a child tells its
   * parent. Their number is bounded by what the actor itself has begun.
   */
  report(message: Message): TellResult;
  /**
   * The answer to a request. Errors: `busy` (mailbox full), `unavailable` (stopped: `NotTaken` before it had the request; or restarted
   * while it had it),
   * `internal` (crashed by it), `timeout`, and whatever error the actor answers.
   */
  ask<Answer>(make: (replyTo: ReplyTo<Answer>) => Message, timeoutMs: number): Promise<Answer>;
}

/** What `perform` may use. It belongs to one life of the actor: after a crash or stop it does nothing any more. */
export interface ActorContext<Props, Message> {
  readonly props: Props;
  readonly path: string;
  readonly self: ActorRef<Message>;
  readonly clock: MonotonicClock;
  readonly random: Random;
  readonly log: Log;
  /** Sends this actor a message about what happened. */
  report(message: Message): void;
  /** Reports how a promise ended. */
  settle<Value>(promise: Promise<Value>, onValue: (value: Value) => Message, onError: (error: ErrorFacts) => Message): void;
  /** Reports `message` after `delayMs`. */
  after(delayMs: number, message: Message): Cancel;
  /** Answers a caller; nothing happens when it waits no longer. */
  reply<Answer>(replyTo: ReplyTo<Answer>, answer: Answer): void;
  fail(replyTo: ReplyTo<never>, error: unknown): void;
  /** Hands a request on to another actor, which answers instead; its refusal is the caller's answer. */
  forward<Other>(target: ActorRef<Other>, message: Other, replyTo: ReplyTo<never>): void;
  /** Starts a child: it stops when this actor stops or crashes. */
  spawn<ChildProps, ChildState extends Tagged, ChildMessage extends Tagged, ChildEffect extends Tagged>(
    behaviour: Behaviour<ChildProps, ChildState, ChildMessage, ChildEffect>,
    name: string,
    props: ChildProps,
  ): ActorRef<ChildMessage>;
  stopChild(name: string): void;
  /** Stops this actor after the effects of the current message. */
  stop(): void;
  /** Runs `cleanup` when this life of the actor ends, by stop or crash, unless cancelled before. */
  onEnd(cleanup: () => void): Cancel;
}

/** A step to `state` with `effects` in order. */
export function become<State, Effect>(state: State, ...effects: Effect[]): Step<State, Effect> {
  return { state, effects };
}

/** Closes a `switch` over a tag: the compiler refuses a tag that was left out. */
export function unreachable(tag: never): never {
  throw new Error(`Unknown tag: ${JSON.stringify(tag)}`);
}
