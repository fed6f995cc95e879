/** A collector for tests: takes OTLP over HTTP in JSON, packed by gzip, and keeps what it got. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
}

interface Body {
  readonly resourceSpans?: readonly { readonly scopeSpans: readonly { readonly spans: readonly CollectedSpan[] }[] }[];
  readonly resourceMetrics?: readonly { readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[] }[];
}

export interface Collector {
  readonly endpoint: string;
  /** Statuses of the next answers; then 200. */
  readonly statuses: number[];
  /** Of each request, also of those that were refused. */
  readonly headers: Readonly<Record<string, unknown>>[];
  readonly spans: CollectedSpan[];
  /** Names. */
  readonly metrics: string[];
}

export async function collectorFor(t: TestContext): Promise<Collector> {
  const got = { statuses: [] as number[], headers: [] as Collector['headers'], spans: [] as CollectedSpan[], metrics: [] as string[] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (bytes: Buffer) => chunks.push(bytes));
    request.on('end', () => {
      got.headers.push(request.headers);
      const status = got.statuses.shift() ?? 200;
      if (status === 200) take(JSON.parse(gunzipSync(Buffer.concat(chunks)).toString()) as Body, got);
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { ...got, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function take({ resourceMetrics = [], resourceSpans = [] }: Body, { metrics, spans }: Pick<Collector, 'metrics' | 'spans'>): void {
  spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
  metrics.push(...resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics.map(({ name }) => name))));
}

export function attribute(span: CollectedSpan | undefined, name: string): unknown {
  const value = span?.attributes.find(({ key }) => key === name)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}
