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

/**
 * Ends the process with this exit code while writers may be in the middle of a transaction, after the listeners of `exit`. `process.exit` would
 * wait for ever: the end of a writer's thread waits for a lock that its own transaction holds.
 */
export function endAtOnce(code: number): void {
  process.emit('exit', code);
  endDespiteThreads(code);
}
