/** Programs that a process loads before Troupe, and that show it another machine than it is on. */

/** It sees another boot id than the machine has. */
export const ON_ANOTHER_MACHINE = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const read = fs.readFileSync;
  fs.readFileSync = (path, ...more) => (path === '/proc/sys/kernel/random/boot_id' ? 'another' : read(path, ...more));
  syncBuiltinESMExports();`;

/** As on a shared volume that has none, or on a Node.js without SQLite. */
export const WITHOUT_KERNEL_LOCK = `
  const get = process.getBuiltinModule;
  process.getBuiltinModule = (id) => (id === 'node:sqlite' ? undefined : get(id));`;
