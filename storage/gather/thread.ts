/**
 * Entry of the gather thread: answers reads over many nodes. Each is a walk through its query that waits for shards most of the time,
 * so that any number of them go on side by side; what one does between two waits is merging, and short.
 */

import { parentPort } from 'node:worker_threads';
import { errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { foundUnknown } from '../../protocols/model/unknown-fields.js';
import { toldIn } from '../explain/told.js';
import { steadyNowMs } from '../threads/clock.js';
import { timeLimitReached } from '../threads/deadline.js';
import type { FromGather, ToGather } from '../threads/gather.js';
import type { GatherActs } from './context.js';
import { gatherRead } from './read.js';

type Post = (message: FromGather, transfer?: ArrayBuffer[]) => void;
type Returned = Exclude<ToGather, { kind: 'gather' | 'forget' }>;

/** One read, and what it waits for. */
class Session {
  private readonly calls = new Map<number, { readonly resolve: (value: never) => void; readonly reject: (error: unknown) => void }>();
  private nextCall = 1;

  constructor(
    private readonly start: Extract<ToGather, { kind: 'gather' }>,
    private readonly post: Post,
  ) {}

  run(): Promise<Uint8Array> {
    const { operation, request, place } = this.start;
    const acts: GatherActs = {
      place,
      locate: (collection) => this.call((id, call) => this.post({ kind: 'locate', id, call, collection })),
      scatter: (ask) => this.call((id, call) => this.post({ kind: 'scatter', id, call, ask }, [ask.body.buffer as ArrayBuffer])),
      expired: () => steadyNowMs() > request.deadlineMs,
      nowMs: () => performance.now(),
      later: setImmediate,
      random: Math.random,
    };
    return gatherRead(operation, request, acts, 'gather');
  }

  returned(message: Returned): void {
    const call = this.calls.get(message.call);
    this.calls.delete(message.call);
    if (call === undefined) return;
    if (message.kind === 'refused') call.reject(errorFromFacts(message.error));
    else call.resolve((message.kind === 'scattered' ? message.answers : message.place) as never);
  }

  /** Ends what it waits for, and so the read. */
  end(): void {
    for (const { reject } of this.calls.values()) reject(timeLimitReached());
    this.calls.clear();
  }

  private call<Value>(post: (id: number, call: number) => void): Promise<Value> {
    const number = this.nextCall++;
    return new Promise((resolve, reject) => {
      this.calls.set(number, { resolve, reject });
      post(this.start.id, number);
    });
  }
}

class Gatherer {
  private readonly sessions = new Map<number, Session>();

  constructor(private readonly post: Post) {}

  receive(message: ToGather): void {
    switch (message.kind) {
      case 'gather':
        void this.gather(message);
        return;
      case 'scattered':
      case 'located':
      case 'refused':
        this.sessions.get(message.id)?.returned(message);
        return;
      case 'forget':
        this.sessions.get(message.id)?.end();
        return;
      default:
        message satisfies never;
    }
  }

  private async gather(message: Extract<ToGather, { kind: 'gather' }>): Promise<void> {
    const { id } = message;
    const session = new Session(message, this.post);
    this.sessions.set(id, session);
    try {
      const body = await session.run();
      const { explain, unknownFields } = message.request;
      this.post({ kind: 'answer', id, body, ...toldIn(explain), ...foundUnknown(unknownFields) }, [body.buffer as ArrayBuffer]);
    } catch (error) {
      // A bug: the caller gets its message, standard error the place.
      if (!(error instanceof TroupeError))
        process.emitWarning(error instanceof Error ? (error.stack ?? error.message) : String(error), 'TroupeGather');
      this.post({ kind: 'error', id, error: errorFacts(error) });
    } finally {
      this.sessions.delete(id);
    }
  }
}

if (parentPort !== null) {
  const port = parentPort;
  const gatherer = new Gatherer((message, transfer) => port.postMessage(message, transfer ?? []));
  port.on('message', (message: ToGather) => gatherer.receive(message));
  port.postMessage({ kind: 'ready' } satisfies FromGather);
}
