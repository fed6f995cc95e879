/** `storage.backups`: plans of backups as they are written in settings, and what is wrong with them. */

import { type Cron, parseCron } from '../../actors/backups/cron.js';
import { type BackupCheck, type BackupPlan, type BackupRetention, isPlanName } from '../../actors/backups/plan.js';
import type { NodeSettings } from './settings.js';

const KEY = 'storage.backups';
const PLAN_KEYS = ['name', 'schedule', 'collections', 'keep', 'verify'];
const KEEP_KEYS = ['last', 'daily', 'weekly'];
/** A plan that keeps more wants `keep` left out. */
const KEEP_MAX = 100_000;

type Group = Readonly<Record<string, unknown>>;
type Refuse = (key: string, expects: string) => void;

/** The plans that are in order, and one line for each value that is not, starting with its key. */
export function readBackupPlans({ storage }: NodeSettings): {
  readonly plans: readonly BackupPlan[];
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const names = new Set<string>();
  const plans = storage.backups.flatMap((given, at) => {
    const before = problems.length;
    const refuse: Refuse = (key, expects) => problems.push(`${KEY}[${at}].${key}: ${expects}`);
    const plan = readPlan(given, refuse);
    if (names.has(plan.name)) refuse('name', `there are two plans ${JSON.stringify(plan.name)}`);
    names.add(plan.name);
    return problems.length === before ? [plan] : [];
  });
  return { plans, problems };
}

function readPlan(given: Group, refuse: Refuse): BackupPlan {
  for (const key of Object.keys(given)) if (!PLAN_KEYS.includes(key)) refuse(key, unknownKey(key));
  return {
    name: readName(given.name, refuse),
    schedule: readSchedule(given.schedule, refuse),
    collections: readCollections(given.collections, refuse),
    keep: readKeep(given.keep, refuse),
    verify: readVerify(given.verify, refuse),
  };
}

function unknownKey(key: string): string {
  if (key === 'target' || key === 'path')
    return 'a plan has no place of its own; backups are kept where `storage.snapshots_path` and `storage.snapshots_config` say';
  return `there is no such setting; a plan has ${PLAN_KEYS.join(', ')}`;
}

function readName(value: unknown, refuse: Refuse): string {
  if (typeof value === 'string' && isPlanName(value)) return value;
  refuse('name', `expected 1 to 32 letters, digits, \`_\` or \`-\`, not beginning with \`_\` or \`-\`, got ${shown(value)}`);
  return '';
}

function readSchedule(value: unknown, refuse: Refuse): Cron {
  const cron = typeof value === 'string' ? parseCron(value) : `expected a cron expression such as \`0 2 * * *\`, got ${shown(value)}`;
  if (typeof cron !== 'string') return cron;
  refuse('schedule', typeof value === 'string' ? `${JSON.stringify(value)}: ${cron}` : cron);
  return { minutes: [], hours: [], days: [], months: [], weekdays: [] };
}

function readCollections(value: unknown, refuse: Refuse): BackupPlan['collections'] {
  if (value === '*') return 'all';
  if (value === 'storage') return 'storage';
  const isList = Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string' && name !== '');
  if (isList) return [...new Set(value as string[])];
  refuse('collections', `expected a list of names, \`"*"\` for all collections or \`storage\` for the whole storage, got ${shown(value)}`);
  return [];
}

function readKeep(value: unknown, refuse: Refuse): BackupRetention | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    refuse('keep', `expected a group with ${KEEP_KEYS.join(', ')}, got ${shown(value)}`);
    return null;
  }
  const group = value as Group;
  for (const key of Object.keys(group)) {
    if (!KEEP_KEYS.includes(key)) refuse(`keep.${key}`, `there is no such setting; \`keep\` has ${KEEP_KEYS.join(', ')}`);
  }
  const count = (key: string): number => {
    const number = group[key] ?? 0;
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= KEEP_MAX) return number;
    refuse(`keep.${key}`, `expected an integer from 0 to ${KEEP_MAX}, got ${shown(number)}`);
    return 1;
  };
  const keep = { last: count('last'), daily: count('daily'), weekly: count('weekly') };
  if (keep.last + keep.daily + keep.weekly === 0)
    refuse('keep', 'expected one of its numbers to be above 0; leave it out to keep everything');
  return keep;
}

function readVerify(value: unknown, refuse: Refuse): BackupCheck {
  if (value === undefined || value === null || value === false) return 'none';
  if (value === 'archive' || value === 'restore') return value;
  refuse('verify', `expected \`false\`, \`archive\` or \`restore\`, got ${shown(value)}`);
  return 'none';
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
