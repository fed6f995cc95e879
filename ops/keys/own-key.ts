/** The key that a secured node makes for itself at its first start, in its storage folder. */

import { chmodSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeSettings } from '../config/settings.js';
import { freshKey } from './fresh-key.js';

export interface OwnKey {
  readonly key: string;
  /** It was made just now. */
  readonly isNew: boolean;
  readonly path: string;
}

const FILE = '.api-key';
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
const KEY = /^[\w-]{32,}$/;

/** Whether the node is to have a key of its own: it is secured, and the settings have none. */
export function wantsOwnKey({ service }: NodeSettings): boolean {
  return service.secured && (service.api_key === null || service.api_key === '');
}

/** One line if these settings cannot be secured, starting with the key; empty when all is well. */
export function securedProblems(settings: NodeSettings): string[] {
  if (!wantsOwnKey(settings) || !settings.cluster.enabled) return [];
  return ['service.secured: the nodes of a cluster need the same key: set service.api_key on each of them (`troupe key` prints one)'];
}

/** The key of a storage folder, which this process has locked; made if there is none. Errors: the system's; a file without a key. */
export function ownKey(storagePath: string): OwnKey {
  const path = ownKeyFile(storagePath);
  if (!existsSync(path)) return { key: make(path), isNew: true, path };
  if ((statSync(path).mode & OTHERS) !== 0) chmodSync(path, OWNER_ONLY);
  const key = readFileSync(path, 'utf8').trim();
  if (!KEY.test(key)) throw new Error(`${path} has no key in it: remove it to have a new one made, or set service.api_key`);
  return { key, isNew: false, path };
}

/** Where the key of a storage folder is, if it has one. */
export function ownKeyFile(storagePath: string): string {
  return join(storagePath, FILE);
}

/** It is on disk before anybody learns it. */
function make(path: string): string {
  const key = freshKey();
  const unfinished = `${path}.new`;
  const file = openSync(unfinished, 'w', OWNER_ONLY);
  writeSync(file, `${key}\n`);
  fsyncSync(file);
  closeSync(file);
  renameSync(unfinished, path);
  return key;
}
