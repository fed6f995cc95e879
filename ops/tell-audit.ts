/** Tells in the log when the audit log cannot be written, when it can be again, and of records that were lost meanwhile: once each. */

import type { AuditLog } from '../http/audit/audit-log.js';
import type { ModuleLog } from './log.js';

const LOOK_EVERY_MS = 1000;

export function tellAudit(audit: AuditLog, log: ModuleLog): void {
  const { folder } = audit.settings;
  let wasFailing = false;
  let saysLost = false;
  let lostBefore = 0;
  setInterval(() => {
    const { failing, lost } = audit.counts();
    if (failing > 0 && !wasFailing) log.error('the audit log cannot be written; requests go on, and some records are kept', { folder });
    if (lost > lostBefore && !saysLost) {
      saysLost = true;
      log.error('records of the audit log are lost', { folder, lost: lost - lostBefore });
    }
    if (failing === 0 && wasFailing) {
      log.warn('the audit log is written again', { folder, lost: lost - lostBefore });
      saysLost = false;
      lostBefore = lost;
    }
    wasFailing = failing > 0;
  }, LOOK_EVERY_MS).unref();
}
