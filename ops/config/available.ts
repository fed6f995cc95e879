/** Settings that ask for what this release does not have. */

import { TroupeError } from '../../protocols/errors.js';
import { defaultQuantization, defaultStrictMode } from './collection-defaults.js';
import type { NodeSettings } from './settings.js';

/** One line for each setting that is switched on but not available, starting with its key; empty when all is well. */
export function unavailableSettings(settings: NodeSettings): string[] {
  const { storage, service, cluster } = settings;
  const checks: readonly (readonly [boolean, string, string])[] = [
    [
      service.jwt_rbac && !isSet(service.api_key) && !service.secured,
      'service.jwt_rbac',
      'no service.api_key that tokens could be signed with',
    ],
    [storage.node_type === 'Listener' && !cluster.enabled, 'storage.node_type', 'listener mode outside of a cluster'],
    [!isDecoded(() => defaultQuantization(settings)), 'storage.collection.quantization', 'no quantization that collections could have'],
    [!isDecoded(() => defaultStrictMode(settings)), 'storage.collection.strict_mode', 'no limits that collections could have'],
  ];
  return checks.filter(([on]) => on).map(([, key, feature]) => `${key}: not available in this release (${feature})`);
}

function isDecoded(decode: () => unknown): boolean {
  try {
    decode();
    return true;
  } catch (error) {
    if (error instanceof TroupeError) return false;
    throw error;
  }
}

function isSet(value: string | null): boolean {
  return value !== null && value !== '';
}
