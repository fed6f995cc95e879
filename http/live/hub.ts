/**
 * Clients that follow the node live. Changes are taken from the streams of the actors once for all of them, made text once, numbered, and kept for a
 * while, so that a client whose connection broke goes on where it was. The first client starts that; some time after the last one it ends.
 */

import type { Readable } from 'node:stream';
import { type LiveChange, TOPICS, type Topic } from '../../actors/live/topics.js';
import type { LiveStreams, NodeApi } from '../../actors/requests/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { DoorServices } from '../context/services.js';
import { UnsentBytes } from '../context/unsent-bytes.js';
import { eventText, HEARTBEAT, parseEventId } from './event-text.js';
import { Follower } from './follower.js';

export interface LiveHubOptions extends Pick<DoorServices, 'memory' | 'monotonicMs'> {
  readonly node: Pick<NodeApi, 'live'>;
}

/** What a client wants. */
export interface FollowRequest {
  readonly topics: readonly Topic[];
  /** Of the header `Last-Event-ID`. */
  readonly lastEventId: string | undefined;
  /** False: it gets what is there now, and no changes. */
  readonly follow: boolean;
}

export interface LiveReport {
  readonly clients: number;
  readonly clientsMax: number;
  /** Since the start. */
  readonly opened: number;
  /** Clients that were cut off as they took too little. */
  readonly cut: number;
  readonly events: number;
}

const CLIENTS_MAX = 64;
const HEARTBEAT_MS = 15_000;
/** A client may take so long to come back. */
const LINGER_MS = 30_000;
const KEPT_EVENTS_MAX = 512;
const KEPT_BYTES_MAX = 1 << 20;
/** Groups in one event of what is there. */
const GROUPS_IN_EVENT = 50;
const RETRY_MS = 2000;

interface Kept {
  readonly number: number;
  readonly topic: Topic;
  readonly text: Buffer;
}

/** From the first client until some time after the last one. */
interface Epoch {
  readonly id: string;
  readonly streams: LiveStreams;
  readonly stop: () => void;
}

export class LiveHub {
  readonly #followers = new Set<Follower>();
  #epoch: Promise<Epoch> | null = null;
  #kept: Kept[] = [];
  #keptBytes = 0;
  #number = 0;
  #lingering: NodeJS.Timeout | null = null;
  #closed = false;
  #opened = 0;
  #cut = 0;
  #events = 0;
  /** Clients whose stream is being opened. */
  #opening = 0;

  constructor(private readonly options: LiveHubOptions) {}

  /** The body of an answer. Errors: `busy` with too many clients; `unavailable` while the node stops. */
  async open(request: FollowRequest): Promise<Readable> {
    if (this.#closed) throw new TroupeError('unavailable', 'the node stops', { retryAfterMs: RETRY_MS });
    if (this.#followers.size + this.#opening >= CLIENTS_MAX)
      throw new TroupeError(
        'busy',
        `${CLIENTS_MAX} clients follow this node already: ask again later, or ask for what you need without following`,
        {
          retryAfterMs: RETRY_MS * 5,
        },
      );
    if (this.#lingering !== null) clearTimeout(this.#lingering);
    this.#lingering = null;
    this.#opening += 1;
    try {
      this.#epoch ??= this.#begin();
      return this.#follow(await this.#epoch, request);
    } finally {
      this.#opening -= 1;
    }
  }

  report(): LiveReport {
    return { clients: this.#followers.size, clientsMax: CLIENTS_MAX, opened: this.#opened, cut: this.#cut, events: this.#events };
  }

  /** Ends all answers, so that connections fall idle. */
  close(): void {
    this.#closed = true;
    for (const follower of this.#followers) follower.end();
    this.#end();
  }

  async #begin(): Promise<Epoch> {
    const streams = await this.options.node.live();
    const id = crypto().randomUUID();
    const unsubscribe = streams.subscribe((change) => this.#tell(id, change));
    const beating = setInterval(() => {
      for (const follower of this.#followers) follower.tell(null, HEARTBEAT);
    }, HEARTBEAT_MS);
    beating.unref();
    const stop = (): void => {
      unsubscribe();
      clearInterval(beating);
    };
    return { id, streams, stop };
  }

  #follow(epoch: Epoch, { follow, lastEventId, topics }: FollowRequest): Readable {
    const unsent = new UnsentBytes(this.options.memory.ledger);
    const follower = new Follower({
      topics: new Set(topics),
      beginning: this.#beginning(epoch, topics, parseEventId(lastEventId)),
      endsThen: !follow,
      hold: (bytes) => unsent.set(bytes, this.options.monotonicMs()),
      onEnd: (isCut) => this.#left(follower, isCut),
    });
    this.#followers.add(follower);
    this.#opened += 1;
    return follower;
  }

  *#beginning(epoch: Epoch, topics: readonly Topic[], last: ReturnType<typeof parseEventId>): Generator<Buffer> {
    const missed = last?.epoch === epoch.id ? this.#since(last.number) : null;
    if (missed !== null) {
      yield Buffer.concat([Buffer.from(`retry: ${RETRY_MS}\n`), eventText('hello', { resumed: true, topics }, null)]);
      for (const { text, topic } of missed) if (topics.includes(topic)) yield text;
      return;
    }
    // What changes while the rest is read comes after it.
    const number = this.#number;
    yield Buffer.concat([Buffer.from(`retry: ${RETRY_MS}\n`), eventText('hello', { resumed: false, topics }, null)]);
    for (const topic of topics) {
      let groups: object[] = [];
      for (const group of epoch.streams.snapshot(topic)) {
        groups.push(group);
        if (groups.length < GROUPS_IN_EVENT) continue;
        yield eventText(topic, { groups }, null);
        groups = [];
      }
      if (groups.length > 0) yield eventText(topic, { groups }, null);
    }
    yield eventText('ready', {}, `${epoch.id}-${number}`);
  }

  /** Events after this one; null: not all of them are kept. */
  #since(number: number): readonly Kept[] | null {
    const first = this.#number - this.#kept.length;
    return number < first || number > this.#number ? null : this.#kept.slice(number - first);
  }

  #tell(epoch: string, { groups, topic }: LiveChange): void {
    this.#number += 1;
    this.#events += 1;
    const text = eventText(topic, { groups }, `${epoch}-${this.#number}`);
    this.#kept.push({ number: this.#number, topic, text });
    this.#keptBytes += text.length;
    while (this.#kept.length > KEPT_EVENTS_MAX || this.#keptBytes > KEPT_BYTES_MAX) this.#keptBytes -= this.#kept.shift()?.text.length ?? 0;
    for (const follower of this.#followers) follower.tell(topic, text);
  }

  #left(follower: Follower, isCut: boolean): void {
    if (!this.#followers.delete(follower)) return;
    if (isCut) this.#cut += 1;
    if (this.#followers.size + this.#opening > 0 || this.#closed) return;
    this.#lingering = setTimeout(() => this.#end(), LINGER_MS);
    this.#lingering.unref();
  }

  #end(): void {
    if (this.#lingering !== null) clearTimeout(this.#lingering);
    const epoch = this.#epoch;
    this.#epoch = null;
    this.#kept = [];
    this.#keptBytes = 0;
    epoch?.then(
      ({ stop }) => stop(),
      () => {},
    );
  }
}

/** Topics by a list with commas; absent: all. Errors: `badRequest`. */
export function topicsFrom(text: string | undefined): readonly Topic[] {
  if (text === undefined) return TOPICS;
  const wanted = text.split(',').map((word) => word.trim());
  const unknown = wanted.find((word) => !(TOPICS as readonly string[]).includes(word));
  if (unknown !== undefined) throw new TroupeError('wrongInput', `there is no topic \`${unknown}\`: name some of ${TOPICS.join(', ')}`);
  return TOPICS.filter((topic) => wanted.includes(topic));
}
