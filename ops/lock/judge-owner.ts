/** Decides whether the owner that a lock file names is alive. Everything it needs to know of this machine is handed in. */

/** A process as it knows itself. What its system does not tell is null. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the process started, since the machine's start: tells apart two processes that had one number. */
  readonly startTicks: string | null;
  /** Another one after each start of the machine; containers of a machine have the same. */
  readonly bootId: string | null;
  /** Numbers of processes mean something within it only; each container has its own. */
  readonly pidNamespace: string | null;
  readonly host: string;
}

/** The file that a kernel lock is on. Equal numbers on one machine are one file, so one lock excludes the other. */
export interface LockedFile {
  readonly device: string;
  readonly inode: string;
}

/** What a lock file says. */
export interface LockHolder extends ProcessIdentity {
  /** Random, so that no two texts are equal. */
  readonly session: string;
  /** Null for an owner without one. */
  readonly kernelLock: LockedFile | null;
}

/** alive: leave the folder alone. dead: it can be taken at once. unknown: only whether its lock file is still touched can tell. */
export type Verdict = 'alive' | 'dead' | 'unknown';

/**
 * - A process that this one can see is alive or dead by its number and its start.
 * - An owner on this machine that locked a file in the kernel has ended when this process got that very lock.
 * - Of others (another machine, another container without such a lock) nothing can be said.
 *
 * kernelLock: the lock that this process has just got. startTicksOf: of a process that runs; null for none, or one that has ended.
 */
export function judgeOwner(
  holder: LockHolder,
  self: ProcessIdentity,
  kernelLock: LockedFile | null,
  startTicksOf: (pid: number) => string | null,
): Verdict {
  const isSameBoot = self.bootId !== null && holder.bootId === self.bootId;
  if (!isSameBoot) return 'unknown';
  const isVisible = self.pidNamespace !== null && holder.pidNamespace === self.pidNamespace && holder.startTicks !== null;
  if (isVisible) return startTicksOf(holder.pid) === holder.startTicks ? 'alive' : 'dead';
  const locked = holder.kernelLock;
  if (locked !== null && kernelLock !== null && locked.device === kernelLock.device && locked.inode === kernelLock.inode) return 'dead';
  return 'unknown';
}

/** What a lock file says; null for a torn one. */
export function parseHolder(content: string): LockHolder | null {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { pid, session, startTicks, bootId, pidNamespace, host, kernelLock } = value as Record<string, unknown>;
  if (!Number.isInteger(pid) || typeof session !== 'string') return null;
  return {
    pid: pid as number,
    session,
    startTicks: textOrNull(startTicks),
    bootId: textOrNull(bootId),
    pidNamespace: textOrNull(pidNamespace),
    host: textOrNull(host) ?? 'unknown',
    kernelLock: parseLockedFile(kernelLock),
  };
}

function parseLockedFile(value: unknown): LockedFile | null {
  if (typeof value !== 'object' || value === null) return null;
  const { device, inode } = value as Record<string, unknown>;
  return typeof device === 'string' && typeof inode === 'string' ? { device, inode } : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
