/** Where the log goes: standard output, and a file when the settings ask for one. */

import { openSync, writeSync } from 'node:fs';
import { SettingsError } from './config/resolve.js';
import type { NodeSettings } from './config/settings.js';
import { type LevelFilter, type LogOutput, parseLevels } from './log.js';

/** The outputs that the settings describe. Errors: SettingsError, naming the key. */
export function openOutputs(settings: NodeSettings): LogOutput[] {
  const { on_disk: onDisk, format } = settings.logger;
  const outputs: LogOutput[] = [
    {
      format: format === 'text' && isColoured(process.stdout, process.env) ? 'terminal' : format,
      filter: filterOf('log_level', settings.log_level),
      write: (line) => void process.stdout.write(line),
    },
  ];
  if (!onDisk.enabled) return outputs;
  const filter = filterOf('logger.on_disk.log_level', onDisk.log_level ?? settings.log_level);
  const file = openFile(onDisk.log_file);
  // Written at once: the lines before a crash are the ones that matter.
  outputs.push({ format: onDisk.format, filter, write: (line) => void writeSync(file, line) });
  return outputs;
}

/** Whether lines may have colours: on a terminal, unless NO_COLOR is set (https://no-color.org). */
export function isColoured(output: { readonly isTTY?: boolean }, environment: Readonly<Record<string, string | undefined>>): boolean {
  return output.isTTY === true && (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb';
}

function filterOf(key: string, specification: string): LevelFilter {
  const filter = parseLevels(specification);
  if (filter !== undefined) return filter;
  const expects = 'ERROR, WARN, INFO, DEBUG, TRACE, OFF or a list of module=level';
  throw new SettingsError([`${key}: expected ${expects}, got ${JSON.stringify(specification)}`]);
}

function openFile(path: string): number {
  try {
    return openSync(path, 'a');
  } catch (error) {
    throw new SettingsError([`logger.on_disk.log_file: cannot be opened: ${error instanceof Error ? error.message : String(error)}`]);
  }
}
