/** Writes points to a collection in batches: at a rate, and again where a node is busy or away for a moment. */

import { markHolder, mayHoldFloats } from '../../protocols/float-marks.js';
import { stringifyJson } from '../../protocols/json.js';
import { apiPath, type NodeConnection, NodeRefusal } from '../client/connection.js';
import { EXIT, ToolError } from '../client/tool.js';

export interface WriterOptions {
  readonly collection: string;
  /** Points per second at most; null: as fast as the node takes them. */
  readonly pointsPerSecond: number | null;
  /** How often a request is sent again before it is given up. */
  readonly retriesMax: number;
  /** Told of each request that is sent again. */
  readonly onRetry: (why: string, pauseMs: number) => void;
}

export interface WriterPorts {
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

/** Larger batches are sent in halves: nodes take 32 MB by default. */
const BODY_CHARACTERS_MAX = 16_000_000;
const PAUSE_MS_MIN = 250;
const PAUSE_MS_MAX = 15_000;

const SYSTEM_PORTS: WriterPorts = {
  nowMs: () => performance.now(),
  pause: (ms) => new Promise((done) => setTimeout(done, ms)),
};

/** Whether the same request may succeed a moment later: the node is away, busy, or short of something that comes back. */
export function mayPass(error: unknown): boolean {
  if (error instanceof NodeRefusal) return [408, 409, 425, 429, 500, 502, 503, 504, 507].includes(error.status);
  return error instanceof ToolError && error.exitCode === EXIT.unreachable;
}

/** Does something until it succeeds, with pauses that double. Errors: the last one; one that is not passing, at once. */
export async function retried<Result>(
  attempt: () => Promise<Result>,
  { onRetry, retriesMax }: Pick<WriterOptions, 'onRetry' | 'retriesMax'>,
  { pause }: Pick<WriterPorts, 'pause'> = SYSTEM_PORTS,
): Promise<Result> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt();
    } catch (error) {
      if (retries >= retriesMax || !mayPass(error)) throw error;
      const asked = error instanceof NodeRefusal ? (error.retryAfterMs ?? 0) : 0;
      const pauseMs = Math.max(asked, Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** retries));
      onRetry((error as Error).message, pauseMs);
      await pause(pauseMs);
    }
  }
}

export class PointWriter {
  /** When the next points may be sent, by the clock of the ports. */
  #freeAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly node: NodeConnection,
    private readonly options: WriterOptions,
    private readonly ports: WriterPorts = SYSTEM_PORTS,
  ) {}

  /** Resolves when the points are on disk and applied. shardKey: null without one. Errors: as `retried`. */
  async write(points: readonly unknown[], shardKey: unknown = null): Promise<void> {
    if (points.length === 0) return;
    await this.#turn(points.length);
    await this.#send(points, shardKey);
  }

  async #send(points: readonly unknown[], shardKey: unknown): Promise<void> {
    // One that has numbers written as 1.0 makes the whole text an exact one.
    if (points.some(mayHoldFloats)) markHolder(points);
    const body = stringifyJson({ points, ...(shardKey === null ? {} : { shard_key: shardKey }) }, points);
    if (body.length > BODY_CHARACTERS_MAX && points.length > 1) {
      const middle = points.length >> 1;
      await this.#send(points.slice(0, middle), shardKey);
      await this.#send(points.slice(middle), shardKey);
      return;
    }
    const path = apiPath`/collections/${this.options.collection}/points?wait=true`;
    await retried(() => this.node.result('PUT', path, body), this.options, this.ports);
  }

  /** Waits so that points go out no faster than the rate. */
  async #turn(count: number): Promise<void> {
    const { pointsPerSecond } = this.options;
    if (pointsPerSecond === null) return;
    const nowMs = this.ports.nowMs();
    const startMs = Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = startMs + (count / pointsPerSecond) * 1000;
    if (startMs > nowMs) await this.ports.pause(startMs - nowMs);
  }
}
