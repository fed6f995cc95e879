/** Sample messages of the actor of backups. */

import { type Cron, parseCron } from '../../../actors/backups/cron.js';
import type { BackupsMessage } from '../../../actors/backups/messages.js';
import { type BackupsState, startingBackups } from '../../../actors/backups/state.js';
import { stepBackups } from '../../../actors/backups/step.js';
import type { Machine } from '../walk.js';

const DAY_MS = 86_400_000;
const PLAN = { name: 'daily', schedule: parseCron('@daily') as Cron, collections: 'all', keep: null, verify: 'none' } as const;

function inputs(state: BackupsState): BackupsMessage[] {
  const outcome = { made: 1, bytes: 1, removed: 0, failures: [] };
  const dateMs = state.kind === 'Starting' ? 0 : Math.min(state.dateMs, DAY_MS);
  return [
    { kind: 'surveyed', newest: new Map(), dateMs },
    { kind: 'woke' },
    { kind: 'look', dateMs },
    { kind: 'look', dateMs: dateMs + DAY_MS },
    { kind: 'ended', outcome, dateMs, durationMs: 1 },
  ];
}

export const BACKUPS: Machine<BackupsState, BackupsMessage> = { step: stepBackups, starts: [startingBackups([PLAN])], inputs };
