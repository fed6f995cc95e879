/**
 * Schedules of five fields, as cron has them: minute, hour, day of the month, month, day of the week; all in UTC. A field is `*` for all values, a
 * value, a range `1-5`, a range with a step (`8-18/2`, or `*` with `/15` behind it), or a list of these with commas. Months and days have names of
 * three letters, and day 7 is Sunday as well as 0. Where neither field of days allows every day, a day fits that one of the two allows.
 */

/** The values that each field allows, ascending. */
export interface Cron {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  /** 0 is Sunday. */
  readonly weekdays: readonly number[];
}

interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The first one stands for `min`. */
  readonly words: readonly string[];
}

const MONTH_WORDS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAY_WORDS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const MINUTE: CronField = { name: 'minute', min: 0, max: 59, words: [] };
const HOUR: CronField = { name: 'hour', min: 0, max: 23, words: [] };
const DAY: CronField = { name: 'day of the month', min: 1, max: 31, words: [] };
const MONTH: CronField = { name: 'month', min: 1, max: 12, words: MONTH_WORDS };
const WEEKDAY: CronField = { name: 'day of the week', min: 0, max: 7, words: WEEKDAY_WORDS };

const SHORT_FORMS: ReadonlyMap<string, string> = new Map([
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
]);

const MONTH_DAYS_MAX = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const DAYS_OF_MONTH = 31;
const DAYS_OF_WEEK = 7;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** The 29th of February is eight years away at most, around a year such as 2100. */
const SEARCH_DAYS = 9 * 366;

/** A text says what is wrong with the expression. */
export function parseCron(text: string): Cron | string {
  const plain = SHORT_FORMS.get(text.trim().toLowerCase()) ?? text.trim();
  if (plain.startsWith('@')) return `${plain} is none of ${[...SHORT_FORMS.keys()].join(', ')}`;
  const parts = plain.split(/\s+/);
  if (parts.length !== 5)
    return `has ${plain === '' ? 0 : parts.length} fields and needs 5: minute, hour, day of the month, month, day of the week`;
  const problems: string[] = [];
  const [minutes, hours, days, months, given] = [MINUTE, HOUR, DAY, MONTH, WEEKDAY].map((field, at) => {
    const values = fieldValues(field, parts[at] as string);
    if (typeof values === 'string') problems.push(values);
    return typeof values === 'string' ? [] : values;
  }) as [number[], number[], number[], number[], number[]];
  if (problems.length > 0) return problems.join('; ');
  const weekdays = ascending(given.map((day) => day % DAYS_OF_WEEK));
  const cron = { minutes, hours, days, months, weekdays };
  return canCome(cron) ? cron : `no month of these has a day ${days.join(' or ')}, so it never comes`;
}

/** The first moment after `timeMs` (milliseconds since the epoch) that the schedule has: the begin of a minute. */
export function nextAfter(cron: Cron, timeMs: number): number {
  const from = (Math.floor(timeMs / MINUTE_MS) + 1) * MINUTE_MS;
  const today = Math.floor(from / DAY_MS) * DAY_MS;
  for (let day = 0; day < SEARCH_DAYS; day++) {
    const midnight = today + day * DAY_MS;
    if (!fitsDay(cron, new Date(midnight))) continue;
    const moment = firstOfDay(cron, midnight, from);
    if (moment !== null) return moment;
  }
  throw new Error(`the schedule ${JSON.stringify(cron)} does not come after ${timeMs}`);
}

/** Null: none from then on. */
function firstOfDay({ hours, minutes }: Cron, midnight: number, from: number): number | null {
  for (const hour of hours) {
    for (const minute of minutes) {
      const moment = midnight + (hour * 60 + minute) * MINUTE_MS;
      if (moment >= from) return moment;
    }
  }
  return null;
}

function fitsDay({ days, months, weekdays }: Cron, date: Date): boolean {
  if (!months.includes(date.getUTCMonth() + 1)) return false;
  const byDay = days.includes(date.getUTCDate());
  const byWeekday = weekdays.includes(date.getUTCDay());
  const areBothGiven = days.length < DAYS_OF_MONTH && weekdays.length < DAYS_OF_WEEK;
  return areBothGiven ? byDay || byWeekday : byDay && byWeekday;
}

function canCome({ days, months, weekdays }: Cron): boolean {
  if (weekdays.length < DAYS_OF_WEEK) return true;
  return months.some((month) => days.some((day) => day <= (MONTH_DAYS_MAX[month - 1] as number)));
}

/** The values of a field, or what is wrong with it. */
function fieldValues(field: CronField, text: string): number[] | string {
  const values: number[] = [];
  for (const part of text.split(',')) {
    const found = partValues(field, part);
    if (typeof found === 'string') return `${field.name} ${JSON.stringify(text)}: ${found}`;
    values.push(...found);
  }
  return ascending(values);
}

function partValues(field: CronField, part: string): number[] | string {
  const { max, min } = field;
  const [, range = '', stepText] = /^([^/]*)(?:\/(.*))?$/.exec(part) ?? [];
  const [firstText = '', lastText, ...more] = range.split('-');
  if (more.length > 0) return `${range} is no range`;
  const isAll = range === '*';
  const isRange = isAll || lastText !== undefined;
  const first = isAll ? min : valueFrom(field, firstText);
  const last = isAll ? max : lastText === undefined ? first : valueFrom(field, lastText);
  if (first === null || last === null) {
    const names = field.words.length === 0 ? '' : `, or names such as ${(field.words[0] as string).toUpperCase()}`;
    return `values are ${min} to ${max}${names}`;
  }
  if (first > last) return `${range} ends before it begins; write it as two ranges`;
  if (stepText !== undefined && !isRange) return `a step needs a range: ${firstText}-${max}/${stepText}`;
  const step = stepText === undefined ? 1 : wholeNumber(stepText);
  if (step === null || step < 1) return `a step is an integer of 1 or more`;
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, at) => first + at * step);
}

/** Null for what the field cannot have. */
function valueFrom({ max, min, words }: CronField, text: string): number | null {
  const word = words.indexOf(text.toLowerCase());
  if (word >= 0) return min + word;
  const value = wholeNumber(text);
  return value !== null && value >= min && value <= max ? value : null;
}

function wholeNumber(text: string): number | null {
  return /^\d{1,4}$/.test(text) ? Number(text) : null;
}

function ascending(values: readonly number[]): number[] {
  return [...new Set(values)].sort((one, other) => one - other);
}
