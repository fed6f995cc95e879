/** Whether single processes can be traced here. */

import { spawnSync } from 'node:child_process';

/** Why nothing can be made to fail here; false where it can. */
export const noStrace: string | false = whyNot();

function whyNot(): string | false {
  if (process.platform !== 'linux') return 'faults are made with strace, which only Linux has';
  const tried = spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', '--trace=openat', '--inject=openat:error=EIO:when=100', 'true']);
  if (tried.error !== undefined) return 'faults are made with strace: install it (Debian and Ubuntu: apt-get install strace)';
  return tried.status === 0
    ? false
    : `strace cannot trace here (a container needs the capability SYS_PTRACE): ${String(tried.stderr).trim()}`;
}
