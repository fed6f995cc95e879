/** Sends the figures of `GET /metrics` to a collector, time after time. */

import type { DoorServices } from '../context/services.js';
import { writeMetrics } from '../reports/metrics.js';
import { metricsBody } from './metrics-body.js';
import { type OtlpAddress, postOtlp } from './post.js';

export interface MetricsPush {
  readonly address: OtlpAddress;
  readonly resource: Readonly<Record<string, string>>;
  readonly periodMs: number;
  /** Told once when figures are not taken any more, and once when they are again (null). */
  readonly tell: (problem: string | null) => void;
}

const OPTIONS = { anonymize: false, perCollection: false };

/** Figures that cannot be sent are not kept: the next ones have what they counted. Ends by the function that it gives. */
export function pushMetrics(services: DoorServices, { address, periodMs, resource, tell }: MetricsPush): () => void {
  const startMs = performance.timeOrigin;
  let isFailing = false;
  let isSending = false;
  const push = async (): Promise<void> => {
    const { identity, reports } = services;
    const chunks = await reports.text(`metrics ${JSON.stringify(OPTIONS)}`, (out) => writeMetrics(out, services, OPTIONS));
    const text = Buffer.concat(chunks).toString();
    const body = await reports.works.run(metricsBody(resource, identity.version, text, { startMs, nowMs: services.dateMs() }));
    const { problem, status } = await postOtlp(address, 'metrics', body);
    const failed = status === null || status < 200 || status >= 300;
    if (failed !== isFailing) tell(failed ? problem : null);
    isFailing = failed;
  };
  const timer = setInterval(() => {
    if (isSending) return;
    isSending = true;
    push()
      .catch((error: unknown) => tell((error as Error).message))
      .finally(() => {
        isSending = false;
      });
  }, periodMs);
  timer.unref();
  return () => clearInterval(timer);
}
