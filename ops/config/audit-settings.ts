/** What the settings say about the audit log. */

import type { AuditLog } from '../../http/audit/audit-log.js';
import { SettingsError } from './resolve.js';
import type { NodeSettings } from './settings.js';

/** The log of this node, whose folder is there; null: it is off. Errors: SettingsError if no file can be written in the folder. */
export async function openAudit({ audit }: NodeSettings): Promise<AuditLog | null> {
  if (!audit.enabled) return null;
  const { AUDIT_MEMORY_BYTES, AuditLog } = await import('../../http/audit/audit-log.js');
  const log = new AuditLog({
    folder: audit.dir,
    rotation: audit.rotation,
    filesMax: audit.max_log_files,
    trustForwarded: audit.trust_forwarded_headers,
    memory: new SharedArrayBuffer(AUDIT_MEMORY_BYTES),
  });
  try {
    await log.check();
    return log;
  } catch (error) {
    throw new SettingsError([`audit.dir: the audit log cannot be written: ${(error as Error).message}`]);
  }
}
