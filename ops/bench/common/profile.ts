/** Where the node's threads spent their time: a summary of the CPU profiles that `--profile` leaves in a folder. */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[];
}

const FUNCTIONS_SHOWN = 20;
/** Threads that hardly ran are left out. */
const BUSY_MS_MIN = 50;

/** One chapter of text per thread: its functions by their own time (without callees), waiting left out. */
export function profileSummary(folder: string): string {
  const profiles = readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'));
  return profiles
    .map((file) => summary(basename(file), JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile))
    .filter((text) => text !== '')
    .join('\n');
}

function summary(file: string, profile: CpuProfile): string {
  const names = new Map(profile.nodes.map((node) => [node.id, nameOf(node.callFrame)]));
  const times = new Map<string, number>();
  profile.samples.forEach((id, i) => {
    const name = names.get(id) ?? '';
    if (name === '(idle)') return;
    times.set(name, (times.get(name) ?? 0) + (profile.timeDeltas[i] ?? 0) / 1000);
  });
  const total = [...times.values()].reduce((sum, ms) => sum + ms, 0);
  if (total < BUSY_MS_MIN) return '';
  const lines = [...times]
    .sort((a, b) => b[1] - a[1])
    .slice(0, FUNCTIONS_SHOWN)
    .map(([name, ms]) => `${((100 * ms) / total).toFixed(1).padStart(6)} %  ${ms.toFixed(0).padStart(8)} ms  ${name}`);
  return [`${file}: ${total.toFixed(0)} ms busy`, ...lines, ''].join('\n');
}

function nameOf(frame: { functionName: string; url: string; lineNumber: number }): string {
  if (frame.url === '') return frame.functionName;
  const place = frame.url.replace(/^.*\/(dist|node_modules)\//, '');
  return `${frame.functionName || '(anonymous)'}  ${place}:${frame.lineNumber + 1}`;
}
