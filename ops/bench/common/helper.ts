/** A helper process of the benchmark that does one job at a time. */

import { fork } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Helper<Job> {
  /** Sends a job and waits for its result; the caller knows the type that belongs to the job. */
  run<Result>(job: Job): Promise<Result>;
  /** Sends something that has no answer of its own. */
  post(message: Job): void;
  end(): void;
}

type Reply = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: string };

const HELPERS = { load: 'load.js', baseline: 'baseline.js', probe: '../snapshots/probe.js' } as const;

/** Starts the helper as a process that ends when this one does. */
export function startHelper<Job extends object>(name: keyof typeof HELPERS): Helper<Job> {
  const file = HELPERS[name];
  const path = join(dirname(fileURLToPath(import.meta.url)), file);
  // Advanced serialization carries typed arrays as they are.
  const child = fork(path, [], { serialization: 'advanced', execArgv: ['--max-old-space-size=8192'] });
  return {
    run<Result>(job: Job): Promise<Result> {
      return new Promise<Result>((done, refuse) => {
        const onExit = (code: number | null) => refuse(new Error(`${file} ended with ${code}`));
        child.once('exit', onExit);
        child.once('message', (reply: Reply) => {
          child.off('exit', onExit);
          if (reply.ok) done(reply.value as Result);
          else refuse(new Error(`${file}: ${reply.error}`));
        });
        child.send(job);
      });
    },
    post(message) {
      child.send(message);
    },
    end() {
      child.disconnect();
    },
  };
}
