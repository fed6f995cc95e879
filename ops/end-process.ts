/** Ends a process of which a thread does not end. */

type Execve = (file: string, words: readonly string[], environment: Record<string, string>) => void;

/**
 * Ends the process with this exit code, and waits for no thread: `process.exit` would wait for one that hangs in native code for ever. The
 * system replaces the whole process, with all its threads, by a program that does nothing but return the code. Node.js before 22.15 cannot
 * do that, and is killed.
 */
export function endDespiteThreads(code: number): void {
  const { execve } = process as unknown as { readonly execve?: Execve };
  execve?.(process.execPath, [process.execPath, '-e', `process.exit(${code})`], {});
  process.kill(process.pid, 'SIGKILL');
}
