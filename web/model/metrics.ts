/** Figures of `GET /metrics`, and how fast they grow. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Prometheus's text format. Lines that are none are left out. */
export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const found = LINE.exec(line);
    if (found === null) continue;
    const labels: Record<string, string> = Object.create(null);
    for (const [, name = '', value = ''] of (found[2] ?? '').matchAll(LABEL)) labels[name] = value;
    samples.push({ name: found[1] as string, labels, value: Number(found[3]) });
  }
  return samples;
}

/** The sum of all samples whose name ends so (a prefix may be configured) and whose labels are taken. */
export function sumOf(samples: readonly Sample[], name: string, takes: (labels: Sample['labels']) => boolean = () => true): number {
  let sum = 0;
  for (const sample of samples) {
    if (sample.name.endsWith(name) && takes(sample.labels)) sum += sample.value;
  }
  return sum;
}

/** Growth a second between two readings; 0 where a counter began anew. */
export function rate(before: number, after: number, seconds: number): number {
  return seconds <= 0 || after < before ? 0 : (after - before) / seconds;
}
