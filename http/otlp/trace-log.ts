/**
 * Records calls as spans, and sends them to a collector. Each thread with a door has one of these.
 *
 * - **Trace-C1** No request waits for the collector, and none fails for it: spans wait in a bounded queue, and what comes beyond is lost and counted.
 */

import { crypto } from '../../protocols/late-modules.js';
import { emptyTrace } from '../../protocols/model/explanation.js';
import { traceNowUs } from '../../storage/threads/clock.js';
import type { Caller } from '../access/caller.js';
import { isSpanError } from '../audit/faults.js';
import { givenRequestId, type RequestOrigin } from '../audit/origin.js';
import type { CallLog, CallOperation, EndCall } from '../context/call-log.js';
import { parseTraceParent, type TraceParent } from '../context/traceparent.js';
import { hopSpans, writeSpans } from './hop-spans.js';
import { type OtlpAddress, postOtlp } from './post.js';
import { afterSend, SendQueue } from './send-queue.js';
import { type AttributeValue, type TraceSpan, tracesBody } from './span.js';

/** Plain data, which goes to other threads as it is. */
export interface TraceSettings {
  readonly address: OtlpAddress;
  readonly version: string;
  readonly resource: Readonly<Record<string, AttributeValue>>;
  /** Part of the requests without a `traceparent` that are recorded, in [0, 1]. With one, its flag decides. */
  readonly ratio: number;
  /** Of `TRACE_MEMORY_BYTES`, zero at first: counts of all threads. */
  readonly memory: SharedArrayBuffer;
}

export interface TraceCounts {
  readonly sent: number;
  readonly lost: number;
}

export const TRACE_MEMORY_BYTES = 16;

const SPANS_MAX = 4096;
const BATCH_MAX = 512;
const SEND_AFTER_MS = 1000;
/** For the last spans of a process that ends. */
const CLOSE_MS = 2000;

export class TraceLog implements CallLog {
  readonly #queue = new SendQueue<TraceSpan>(SPANS_MAX, BATCH_MAX);
  readonly #counts: BigUint64Array;
  #timer: NodeJS.Timeout | null = null;
  #sending: Promise<void> | null = null;
  #failures = 0;
  #lostTold = 0;

  constructor(
    readonly settings: TraceSettings,
    private readonly random: () => number = Math.random,
  ) {
    this.#counts = new BigUint64Array(settings.memory);
  }

  begin(
    protocol: 'rest' | 'grpc',
    { access, name }: CallOperation,
    _caller: Caller,
    collection: string | null,
    origin: RequestOrigin,
  ): EndCall | null {
    // Health checks and the like.
    if (access === 'open') return null;
    const given = origin.field('traceparent');
    const parent = given === undefined ? null : parseTraceParent(given);
    if (!(parent === null ? this.random() < this.settings.ratio : parent.isSampled)) return null;
    const startUs = traceNowUs();
    const requestId = givenRequestId(origin);
    const { address } = origin;
    const trace = emptyTrace();
    const end: EndCall = (status) => {
      const span: TraceSpan = {
        ...placeIn(parent),
        name: collection === null ? name : `${name} ${collection}`,
        kind: 'server',
        startUs,
        endUs: traceNowUs(),
        attributes: {
          'db.operation.name': name,
          ...(collection === null ? {} : { 'db.collection.name': collection }),
          ...(status === null ? {} : statusOf(protocol, status)),
          'client.address': address,
          ...(requestId === null ? {} : { 'troupe.request_id': requestId }),
        },
        isError: status !== null && isSpanError(protocol, status),
      };
      const { explanation, hops } = trace;
      const newId = () => randomId(8);
      this.#add([span, ...(explanation === null ? [] : hopSpans(span, explanation, newId)), ...writeSpans(span, hops, newId)]);
    };
    return Object.assign(end, { trace });
  }

  counts(): TraceCounts {
    const [sent, lost] = [0, 1].map((at) => Number(Atomics.load(this.#counts, at)));
    return { sent: sent as number, lost: lost as number };
  }

  /** Sends what waits, for a moment. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
    await Promise.race([late, this.#sendAll()]);
  }

  async #sendAll(): Promise<void> {
    await this.#sending;
    while (this.#queue.length > 0 && this.#failures === 0) await this.#send();
  }

  #add(spans: readonly TraceSpan[]): void {
    this.#queue.add(spans);
    this.#tellLost();
    if (this.#queue.length >= BATCH_MAX && this.#failures === 0) this.#sendNow();
    else this.#later(SEND_AFTER_MS);
  }

  #later(delayMs: number): void {
    if (this.#timer !== null || this.#sending !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#sendNow();
    }, delayMs);
    this.#timer.unref();
  }

  #sendNow(): void {
    this.#sending ??= this.#send().then((delayMs) => {
      this.#sending = null;
      if (this.#queue.length > 0) this.#later(delayMs);
    });
  }

  /** Resolves with the time until the next batch may be sent. Never rejects. */
  async #send(): Promise<number> {
    const { address, resource, version } = this.settings;
    const batch = this.#queue.batch();
    if (batch.length === 0) return 0;
    const { retryAfterSec, status } = await postOtlp(address, 'traces', tracesBody(resource, version, batch));
    const after = afterSend(status, this.#failures, retryAfterSec, this.random());
    if (after.kind === 'again') {
      this.#failures++;
      return after.delayMs;
    }
    this.#failures = 0;
    this.#queue.done(batch.length, after.kind === 'refused');
    if (after.kind === 'sent') Atomics.add(this.#counts, 0, BigInt(batch.length));
    this.#tellLost();
    return this.#queue.length >= BATCH_MAX ? 0 : SEND_AFTER_MS;
  }

  #tellLost(): void {
    Atomics.add(this.#counts, 1, BigInt(this.#queue.lost - this.#lostTold));
    this.#lostTold = this.#queue.lost;
  }
}

function placeIn(parent: TraceParent | null): Pick<TraceSpan, 'traceId' | 'spanId' | 'parentSpanId'> {
  return { traceId: parent?.traceId ?? randomId(16), spanId: randomId(8), parentSpanId: parent?.spanId ?? null };
}

function randomId(bytes: number): string {
  return crypto().randomBytes(bytes).toString('hex');
}

function statusOf(protocol: 'rest' | 'grpc', status: number): Readonly<Record<string, AttributeValue>> {
  return protocol === 'rest' ? { 'http.response.status_code': status } : { 'rpc.system': 'grpc', 'rpc.grpc.status_code': status };
}
