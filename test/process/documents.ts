/** What the tests of documents share: code blocks, and shells that run them. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Where a block is run, and with which variables. */
export interface Place {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

export async function checkCurl(): Promise<void> {
  const child = spawn('curl', ['--version'], { stdio: 'ignore' });
  const missing = await Promise.race([once(child, 'error'), once(child, 'exit').then(() => null)]);
  if (missing !== null) throw new Error('curl is missing: this test runs the commands of documents. Install curl');
}

export function blocksOf(markdown: string, allFenced = true): string[] {
  const fenced = /^```\w*\n([\s\S]*?)^```$/gm;
  if (allFenced) assert.doesNotMatch(markdown.replace(fenced, ''), /\n\n {4}\S/, 'code stands between fences, not indented');
  return [...markdown.matchAll(fenced)].map(([, code]) => code as string);
}

/** What a block prints. Rejects with it when one of its commands fails. */
export async function run(code: string, { environment, folder }: Place): Promise<string> {
  const child = spawn('sh', ['-e', '-c', code], {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [printed, errors] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => {
    printed += bytes.toString();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    errors += bytes.toString();
  });
  const [status] = (await once(child, 'close')) as [number | null];
  assert.equal(status, 0, `${code}\n${printed}\n${errors}`);
  return printed;
}

export function answers(printed: string): unknown[] {
  return printed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}
