/** What reports show of backups, as the actor of backups last said. */

import type { PlanStatus } from './state.js';

export class BackupBoard {
  /** In the order of the settings. */
  plans: readonly PlanStatus[] = [];
}
