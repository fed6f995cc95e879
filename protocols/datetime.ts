/**
 * Points in time of payloads and filters: RFC 3339 and the shorter spellings clients use
 * (`2024-03-01`, `2024-03-01 10:00`, `2024-03-01T10:00:00.5`), which are taken as UTC.
 */

const SPELLING = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/;
const DAYS_OF_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Microseconds since the epoch, or undefined when the text is no time. Digits beyond microseconds are cut off.
 * Doubles are exact to the microsecond until the year 2255.
 */
export function parseDatetime(text: string): number | undefined {
  const code = text.charCodeAt(0);
  if (code < 0x30 || code > 0x39) return undefined;
  const match = SPELLING.exec(text);
  if (match === null) return undefined;
  const year = Number(match[1]);
  const month = Number(match[2]);
  const day = Number(match[3]);
  const hour = Number(match[4] ?? 0);
  const minute = Number(match[5] ?? 0);
  const second = Number(match[6] ?? 0);
  if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month)) return undefined;
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const offset = offsetMinutes(match[8]);
  if (offset === undefined) return undefined;
  const micros = Number((match[7] ?? '').slice(0, 6).padEnd(6, '0'));
  return (daysSinceEpoch(year, month, day) * 86_400 + hour * 3600 + (minute - offset) * 60 + second) * 1e6 + micros;
}

/** Minutes east of UTC; undefined when out of range. */
function offsetMinutes(zone: string | undefined): number | undefined {
  if (zone === undefined || zone === 'Z' || zone === 'z') return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(zone[3] === ':' ? 4 : 3) || 0);
  if (hours > 23 || minutes > 59) return undefined;
  return (zone[0] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

function daysOf(year: number, month: number): number {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 && leap ? 29 : (DAYS_OF_MONTH[month - 1] as number);
}

/** Days from 1970-01-01 in the Gregorian calendar. The year is counted from March, so that the leap day comes last. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const marchMonth = (month + 9) % 12;
  const dayOfYear = Math.floor((153 * marchMonth + 2) / 5) + day - 1;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  return marchYear * 365 + leapDays + dayOfYear - 719_468;
}
