/** Which Node.js serves, and why: for the first line of the log. `launch.sh` chooses and says in TROUPE_STARTED what it found. */

/**
 * How a runtime was chosen: the one that Troupe brings along (`brought`), or the one that started Troupe, because it was asked for
 * (`chosen`), is as new (`newer`), or because the one brought along is not installed (`missing`) or does not run here (`unusable`);
 * `direct`: Node.js was started with the server's file, past the launcher.
 */
const REASONS = ['brought', 'chosen', 'newer', 'missing', 'unusable', 'direct'] as const;
type Reason = (typeof REASONS)[number];

export interface RuntimeReport {
  readonly level: 'info' | 'warn';
  readonly message: string;
  /** `brought along` or `own`. */
  readonly runtime: string;
}

/**
 * What to log about the runtime. started: the variable TROUPE_STARTED (the reason, and the version of the Node.js that started Troupe as
 * major·10⁶ + minor·10³ + patch, 0 for none); undefined without the launcher. version: `process.version`.
 */
export function describeRuntime(started: string | undefined, version: string): RuntimeReport {
  const [word = '', number = '0'] = (started ?? 'direct').split(' ');
  const reason: Reason = REASONS.find((known) => known === word) ?? 'direct';
  const report = (message: string, level: 'info' | 'warn' = 'info'): RuntimeReport => ({
    level,
    message: `Node.js ${version} serves${message}`,
    runtime: reason === 'brought' ? 'brought along' : 'own',
  });
  switch (reason) {
    case 'brought':
      return report(number === '0' ? ', brought along by Troupe' : `, brought along by Troupe; ${versionOf(Number(number))} started it`);
    case 'chosen':
      return report(', which started Troupe (TROUPE_RUNTIME=own)');
    case 'newer':
      return report(', which started Troupe');
    case 'missing':
      return report(
        ', which started Troupe: the newer one is not installed here; `npm install` without --omit=optional brings it, if there is one for this platform',
        'warn',
      );
    case 'unusable':
      return report(', which started Troupe: the newer one does not run on this machine (it needs glibc 2.28)', 'warn');
    case 'direct':
      return report(', started without the `troupe` command');
    default:
      return reason satisfies never;
  }
}

function versionOf(number: number): string {
  return `v${Math.floor(number / 1_000_000)}.${Math.floor(number / 1000) % 1000}.${number % 1000}`;
}
