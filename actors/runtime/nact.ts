/**
 * Mailboxes made of nact actors: one message at a time, each in an event-loop turn of its own. The only importer of nact.
 *
 * A mailbox has a nact actor only while messages wait in it: thousands of mailboxes wait for nothing most of the time. All nact actors are on
 * one level, as nact copies the map of an actor's children for each message to it. Supervision, bounds and counts are the shell's (`actor.ts`),
 * as nact has no bounds and drops messages to stopped actors silently.
 */

import * as nact from 'nact';
import type { Mailbox, Mailboxes } from './ports.js';

/** A nact actor. */
interface Carrier {
  readonly ref: nact.Ref<unknown>;
  /** Whose messages it has; null if it is free. */
  mailbox: NactMailbox | null;
}

/** Free carriers that are kept for whoever needs one next. */
const FREE_MAX = 256;

export function openNactMailboxes(): Mailboxes {
  const carriers = new Carriers();
  return { open: (_parent, _name, receive) => new NactMailbox(carriers, receive), close: () => carriers.close() };
}

class NactMailbox implements Mailbox {
  /** Messages that wait, all of them with the same carrier. */
  private waiting = 0;
  private carrier: Carrier | null = null;
  private isClosed = false;

  constructor(
    private readonly carriers: Carriers,
    private readonly receive: (item: unknown) => void,
  ) {}

  post(item: unknown): void {
    if (this.isClosed) return;
    this.carrier ??= this.carriers.take(this);
    if (this.carrier === null) return;
    this.waiting++;
    nact.dispatch(this.carrier.ref, item);
  }

  deliver(item: unknown): void {
    this.waiting--;
    // What is posted from now on may come with another carrier: nothing waits with this one.
    if (this.waiting === 0) this.giveBack();
    this.receive(item);
  }

  close(): void {
    this.isClosed = true;
    if (this.carrier !== null) this.carriers.end(this.carrier);
    this.carrier = null;
  }

  private giveBack(): void {
    if (this.carrier !== null) this.carriers.giveBack(this.carrier);
    this.carrier = null;
  }
}

class Carriers {
  private readonly system = nact.start();
  private readonly free: Carrier[] = [];
  private made = 0;
  private isClosed = false;

  /** A carrier for the messages of this mailbox; null: nothing is delivered any more. */
  take(mailbox: NactMailbox): Carrier | null {
    if (this.isClosed) return null;
    const carrier = this.free.pop() ?? this.make();
    carrier.mailbox = mailbox;
    return carrier;
  }

  giveBack(carrier: Carrier): void {
    carrier.mailbox = null;
    if (this.free.length < FREE_MAX) this.free.push(carrier);
    else this.end(carrier);
  }

  /** What still waits with it is dropped. */
  end(carrier: Carrier): void {
    carrier.mailbox = null;
    nact.stop(carrier.ref);
  }

  close(): void {
    this.isClosed = true;
    nact.stop(this.system);
  }

  private make(): Carrier {
    const ref = nact.spawn(
      this.system,
      // The handler returns at once and keeps no state: nact takes the next message when it has returned.
      (_state: null, item: unknown) => {
        carrier.mailbox?.deliver(item);
        return null;
      },
      `carrier-${this.made++}`,
      { initialState: null, onCrash: (_message, _error, context) => context.resume },
    );
    const carrier: Carrier = { ref, mailbox: null };
    return carrier;
  }
}
