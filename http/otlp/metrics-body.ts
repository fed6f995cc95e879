/** Figures of `GET /metrics` as OTLP has them, in JSON. Sources: Prometheus text exposition format 0.0.4; OTLP 1.x, `metrics/v1/metrics.proto`. */

import type { LongWork } from '../../actors/runtime/long-works.js';
import { type AttributeValue, attributesOf, nanoseconds } from './span.js';

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: Sample[];
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricsMoment {
  /** Milliseconds since the epoch: since when counters count, and when these figures were read. */
  readonly startMs: number;
  readonly nowMs: number;
}

const CUMULATIVE = 2;
/** Lines that are taken in one step. */
const LINES_A_STEP = 200;

/** The body of a request to `/v1/metrics`. text: as `GET /metrics` answers it. resource: of this process. */
export function* metricsBody(
  resource: Readonly<Record<string, AttributeValue>>,
  version: string,
  text: string,
  moment: MetricsMoment,
): LongWork<object> {
  const families = yield* familiesIn(text);
  const metrics: object[] = [];
  for (const family of families) {
    metrics.push(metricJson(family, moment));
    yield;
  }
  return {
    resourceMetrics: [
      { resource: { attributes: attributesOf(resource) }, scopeMetrics: [{ scope: { name: 'troupe', version }, metrics }] },
    ],
  };
}

function* familiesIn(text: string): LongWork<readonly Family[]> {
  const families: Family[] = [];
  let help = '';
  let lines = 0;
  for (const line of text.split('\n')) {
    if (++lines % LINES_A_STEP === 0) yield;
    if (line.startsWith('# HELP ')) help = line.slice(line.indexOf(' ', 7) + 1);
    else if (line.startsWith('# TYPE ')) {
      const [name = '', type = ''] = line.slice(7).split(' ');
      families.push({ name, help, type, samples: [] });
    } else if (line !== '') families.at(-1)?.samples.push(sampleOf(line));
  }
  return families;
}

function sampleOf(line: string): Sample {
  const end = line.lastIndexOf(' ');
  const open = line.indexOf('{');
  const isLabelled = open > 0 && open < end;
  return {
    name: line.slice(0, isLabelled ? open : end),
    labels: isLabelled ? labelsIn(line.slice(open + 1, line.lastIndexOf('}'))) : {},
    value: Number(line.slice(end + 1)),
  };
}

function labelsIn(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
  return Object.fromEntries(pairs.map(([, name, value]) => [name as string, unescaped(value as string)]));
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

function metricJson(family: Family, moment: MetricsMoment): object {
  const { help: description, name, type } = family;
  if (type === 'histogram')
    return { name, description, histogram: { aggregationTemporality: CUMULATIVE, dataPoints: histograms(family, moment) } };
  const dataPoints = family.samples.map(({ labels, value }) => ({ ...pointOf(labels, moment), asDouble: value }));
  if (type === 'counter') return { name, description, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } };
  return { name, description, gauge: { dataPoints } };
}

interface Histogram {
  readonly labels: Readonly<Record<string, string>>;
  /** Counts up to each bound, the last one without a bound. */
  readonly counts: number[];
  readonly bounds: number[];
  sum: number;
  count: number;
}

/** The samples of a family, which stand by label values one after the other. */
function histograms({ name, samples }: Family, moment: MetricsMoment): readonly object[] {
  const byLabels = new Map<string, Histogram>();
  for (const sample of samples) {
    const { le, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    const histogram = byLabels.get(key) ?? { labels, counts: [], bounds: [], sum: 0, count: 0 };
    byLabels.set(key, histogram);
    if (sample.name === `${name}_sum`) histogram.sum = sample.value;
    else if (sample.name === `${name}_count`) histogram.count = sample.value;
    else {
      histogram.counts.push(sample.value);
      if (le !== undefined && le !== '+Inf') histogram.bounds.push(Number(le));
    }
  }
  return [...byLabels.values()].map(({ bounds: explicitBounds, count, counts, labels, sum }) => ({
    ...pointOf(labels, moment),
    count: String(count),
    sum,
    bucketCounts: counts.map((upTo, at) => String(upTo - (counts[at - 1] ?? 0))),
    explicitBounds,
  }));
}

function pointOf(labels: Readonly<Record<string, string>>, { nowMs, startMs }: MetricsMoment): object {
  return { attributes: attributesOf(labels), startTimeUnixNano: nanoseconds(startMs * 1000), timeUnixNano: nanoseconds(nowMs * 1000) };
}
