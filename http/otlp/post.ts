/** One request to a collector, as OTLP over HTTP with JSON. */

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const TIMEOUT_MS = 10_000;
const packed = promisify(gzip);

export interface OtlpAddress {
  /** Without `/v1/…`: `http://localhost:4318`. */
  readonly endpoint: string;
  /** Of each request: secrets, mostly. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface PostAnswer {
  /** Null: no answer. */
  readonly status: number | null;
  readonly retryAfterSec: number | null;
  /** What went wrong, for the log. */
  readonly problem: string;
}

export type Signal = 'traces' | 'metrics';

/** Never rejects. A redirect is not followed: headers would go to somebody else. */
export async function postOtlp({ endpoint, headers }: OtlpAddress, signal: Signal, body: object): Promise<PostAnswer> {
  try {
    const response = await fetch(`${endpoint.replace(/\/+$/, '')}/v1/${signal}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: new Uint8Array(await packed(JSON.stringify(body))),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.body?.cancel();
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    const { status } = response;
    return { status, retryAfterSec: Number.isFinite(retryAfter) ? retryAfter : null, problem: `status ${status}` };
  } catch (error) {
    return { status: null, retryAfterSec: null, problem: problemOf(error) };
  }
}

function problemOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}
