/** The Prometheus text exposition format. */

export type MetricType = 'gauge' | 'counter' | 'histogram';
export type Labels = Readonly<Record<string, string | number>>;

/** Text of metrics, family after family; a family stands together, as the format wants it. */
export class MetricsWriter {
  private readonly lines: string[] = [];

  constructor(private readonly prefix: string) {}

  /** Starts a family. Its samples follow by `sample` and `histogram`. */
  family(name: string, type: MetricType, help: string): this {
    this.lines.push(`# HELP ${this.prefix}${name} ${help}`, `# TYPE ${this.prefix}${name} ${type}`);
    return this;
  }

  sample(name: string, labels: Labels, value: number): this {
    this.lines.push(`${this.prefix}${name}${labelText(labels)} ${value}`);
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

  text(): string {
    return `${this.lines.join('\n')}\n`;
  }
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(String(value))}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}
