import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Cron, parseCron } from '../../../actors/backups/cron.js';
import { readBackupPlans } from '../../../ops/config/backup-settings.js';
import { resolveSettings, SettingsError } from '../../../ops/config/resolve.js';

function read(...backups: unknown[]) {
  return readBackupPlans(resolveSettings([{ kind: 'tree', name: 'test', tree: { storage: { backups } } }]).settings);
}

const PLAN = { name: 'nightly', schedule: '0 2 * * *', collections: '*' };

test('plans are read with what they leave out', () => {
  const schedule = parseCron('0 2 * * *') as Cron;
  assert.deepEqual(read(PLAN), {
    plans: [{ name: 'nightly', schedule, collections: 'all', keep: null, verify: 'none' }],
    problems: [],
  });
  const { plans } = read({ ...PLAN, collections: ['a', 'b', 'a'], keep: { last: 2, weekly: 4 }, verify: 'restore' });
  assert.deepEqual(plans, [
    { name: 'nightly', schedule, collections: ['a', 'b'], keep: { last: 2, daily: 0, weekly: 4 }, verify: 'restore' },
  ]);
  assert.equal(read({ ...PLAN, collections: 'storage' }).plans[0]?.collections, 'storage');
  assert.deepEqual(readBackupPlans(resolveSettings([]).settings), { plans: [], problems: [] });
});

test('a variable gives the list as JSON, and what is no list is refused', () => {
  const of = (text: string) => resolveSettings([{ kind: 'environment', variables: { SERVICE__STORAGE__BACKUPS: text } }]);
  assert.deepEqual(
    readBackupPlans(of(JSON.stringify([PLAN])).settings).plans.map(({ name }) => name),
    ['nightly'],
  );
  for (const text of ['nightly', '{}', '[1]', '']) assert.throws(() => of(text), SettingsError, text);
});

test('each value that does not fit is named with its key', () => {
  const keyOf = (line: string) => line.slice(0, line.indexOf(':'));
  const wrong: [unknown, string][] = [
    [{ ...PLAN, name: undefined }, 'name'],
    [{ ...PLAN, name: 'a b' }, 'name'],
    [{ ...PLAN, name: '-a' }, 'name'],
    [{ ...PLAN, schedule: undefined }, 'schedule'],
    [{ ...PLAN, schedule: 5 }, 'schedule'],
    [{ ...PLAN, schedule: '0 0 30 2 *' }, 'schedule'],
    [{ ...PLAN, collections: undefined }, 'collections'],
    [{ ...PLAN, collections: 'c' }, 'collections'],
    [{ ...PLAN, collections: [] }, 'collections'],
    [{ ...PLAN, collections: [1] }, 'collections'],
    [{ ...PLAN, keep: 3 }, 'keep'],
    [{ ...PLAN, keep: {} }, 'keep'],
    [{ ...PLAN, keep: { last: 0 } }, 'keep'],
    [{ ...PLAN, keep: { last: -1 } }, 'keep.last'],
    [{ ...PLAN, keep: { daily: 1.5 } }, 'keep.daily'],
    [{ ...PLAN, keep: { last: 1, monthly: 1 } }, 'keep.monthly'],
    [{ ...PLAN, verify: true }, 'verify'],
    [{ ...PLAN, cron: '@daily' }, 'cron'],
  ];
  for (const [given, key] of wrong) assert.deepEqual(read(given).problems.map(keyOf), [`storage.backups[0].${key}`], JSON.stringify(given));
  const { plans, problems } = read(PLAN, { name: '', schedule: '', collections: '' }, PLAN);
  assert.deepEqual(
    problems.map(keyOf),
    ['[1].name', '[1].schedule', '[1].collections', '[2].name'].map((key) => `storage.backups${key}`),
  );
  assert.equal(plans.length, 1);
});

test('a plan that names a place of its own hears where backups are kept', () => {
  const [line = ''] = read({ ...PLAN, target: 'elsewhere' }).problems;
  assert.match(line, /^storage\.backups\[0\]\.target: a plan has no place of its own; .*storage\.snapshots_path/);
});
