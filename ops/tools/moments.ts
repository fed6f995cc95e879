/** Times and spans as people write them. */

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `90s`, `30m`, `8h`, `7d`; null for another text. */
export function spanMs(text: string): number | null {
  const [, digits, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits) * (UNIT_MS[unit as string] as number);
}

/** Milliseconds since the epoch of a date (`2026-11-25`, `2026-11-25T18:00:00Z`; UTC without a zone) or of a span before now; null for another text. */
export function momentMs(text: string, nowMs: number): number | null {
  const span = spanMs(text);
  if (span !== null) return nowMs - span;
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(text)) return null;
  const parsed = Date.parse(/T.*(Z|[+-]\d{2}:\d{2})$/.test(text) || !text.includes('T') ? text : `${text}Z`);
  return Number.isNaN(parsed) ? null : parsed;
}
