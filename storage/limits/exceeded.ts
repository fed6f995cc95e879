/**
 * Errors of requests that go beyond a limit of their collection. Each says the limit's value, what was asked for and what to change, and
 * carries the field of `strict_mode_config`. Source of the texts: contract, scenarios strict-*.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { StrictModeConfig } from '../../protocols/model/collection.js';

export function overLimit(limit: keyof StrictModeConfig, detail: string): TroupeError {
  return new TroupeError('badRequest', detail, { limit });
}

/** Checks a parameter. max: undefined for no limit. Errors: `badRequest`. */
export function checkMost(limit: keyof StrictModeConfig, parameter: string, asked: number, max: number | undefined): void {
  if (max === undefined || asked <= max) return;
  const help = `Reduce the "${parameter}" parameter to or below ${max}.`;
  throw overLimit(limit, `Limit exceeded ${asked} > ${max} for "${parameter}". Help: ${help}`);
}

/** Checks the client's timeout, in seconds. Errors: `badRequest`. */
export function checkLongest(timeoutSeconds: number | undefined, { max_timeout: max }: StrictModeConfig): void {
  if (timeoutSeconds !== undefined) checkMost('max_timeout', 'timeout', timeoutSeconds, max);
}
