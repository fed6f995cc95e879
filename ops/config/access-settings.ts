/** What a node lets requests in by, from its settings. */

import type { KeySetting } from '../../http/access/caller.js';
import type { AccessSettings } from '../../http/access/known-callers.js';
import type { NodeSettings } from './settings.js';

/** Null: no key is set, so there is no access control. */
export function accessSettings({ service }: Pick<NodeSettings, 'service'>): AccessSettings | null {
  const keys = new Map<KeySetting, string>();
  const add = (setting: KeySetting, key: string | null): void => {
    if (key !== null && key !== '') keys.set(setting, key);
  };
  add('service.api_key', service.api_key);
  add('service.alt_api_key', service.alt_api_key);
  add('service.read_only_api_key', service.read_only_api_key);
  return keys.size === 0 ? null : { keys, tokens: service.jwt_rbac };
}
