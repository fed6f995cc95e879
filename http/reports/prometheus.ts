/** The Prometheus text exposition format. */

import type { TextBytes } from '../context/text-bytes.js';

export type MetricType = 'gauge' | 'counter' | 'histogram';
export type Labels = Readonly<Record<string, string | number>>;

/** Writes metrics, family after family; a family stands together, as the format wants it. */
export class MetricsWriter {
  constructor(
    private readonly prefix: string,
    private readonly out: TextBytes,
  ) {}

  /** Starts a family. Its samples follow by `sample` and `histogram`. */
  family(name: string, type: MetricType, help: string): this {
    this.out.write(`# HELP ${this.prefix}${name} ${help}\n# TYPE ${this.prefix}${name} ${type}\n`);
    return this;
  }

  sample(name: string, labels: Labels, value: number): this {
    return this.labelled(name, labelText(labels), value);
  }

  /** A sample whose labels are a text already (`labelText`). */
  labelled(name: string, labels: string, value: number): this {
    this.out.write(`${this.prefix}${name}${labels} ${value}\n`);
    return this;
  }

  /** buckets: counts per bucket, not cumulated, one more than `bounds`. sum: in the unit of the bounds. */
  histogram(name: string, labels: Labels, bounds: readonly number[], buckets: ArrayLike<number>, sum: number): this {
    let total = 0;
    bounds.forEach((bound, at) => {
      total += buckets[at] as number;
      this.sample(`${name}_bucket`, { ...labels, le: bound }, total);
    });
    total += buckets[bounds.length] as number;
    this.sample(`${name}_bucket`, { ...labels, le: '+Inf' }, total);
    this.sample(`${name}_sum`, labels, sum);
    return this.sample(`${name}_count`, labels, total);
  }
}

export function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(String(value))}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}
