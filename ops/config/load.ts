/** Reads the sources of settings: YAML files and environment variables. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Resolved, resolveSettings, SettingsError, type SettingsSource } from './resolve.js';

export interface SettingsOrigin {
  /** Folder that `config/` lies in. */
  readonly folder: string;
  /** A further file, which must be there; undefined for none. */
  readonly configPath: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Settings from `config/config.yaml`, `config/<RUN_MODE>.yaml`, `config/local.yaml`, the file of `--config-path` and
 * `SERVICE__` variables; the later one wins. Errors: SettingsError.
 */
export function loadSettings(options: SettingsOrigin): Resolved {
  const runMode = options.environment.RUN_MODE;
  const sources: SettingsSource[] = [];
  for (const name of ['config', ...(runMode ? [runMode] : []), 'local']) {
    const path = join(options.folder, 'config', `${name}.yaml`);
    if (existsSync(path)) sources.push(readYaml(path));
  }
  if (options.configPath !== undefined) {
    if (!existsSync(options.configPath)) throw new SettingsError([`--config-path: no such file: ${options.configPath}`]);
    sources.push(readYaml(options.configPath));
  }
  sources.push({ kind: 'environment', variables: options.environment });
  return resolveSettings(sources);
}

function readYaml(path: string): SettingsSource {
  try {
    return { kind: 'tree', name: path, tree: parse(readFileSync(path, 'utf8')) };
  } catch (error) {
    throw new SettingsError([`${path}: cannot be read as YAML: ${error instanceof Error ? error.message : String(error)}`]);
  }
}
