/** Numbers and times as people read them. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** 1234567 → "1,234,567". */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** At most three digits that matter: 1536 → "1.54 kB". */
export function bytes(value: number): string {
  let unit = 0;
  let shown = value;
  while (shown >= 1000 && unit < UNITS.length - 1) {
    shown /= 1000;
    unit++;
  }
  return `${digits(shown)} ${UNITS[unit]}`;
}

/** 0.000123 s → "123 µs". */
export function seconds(value: number): string {
  if (value < 1e-3) return `${digits(value * 1e6)} µs`;
  if (value < 1) return `${digits(value * 1e3)} ms`;
  if (value < 120) return `${digits(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172_800) return `${digits(value / 3600)} h`;
  return `${Math.round(value / 86_400)} days`;
}

/** Three digits that matter, and no more than are there. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

/** A time as the API writes it, to the second: "2026-11-26T05:07:59" → "2026-11-26 05:07:59". */
export function moment(time: string): string {
  return time.replace('T', ' ').slice(0, 19);
}

/** Share in percent; "–" of nothing. */
export function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${digits((100 * part) / whole)} %`;
}
