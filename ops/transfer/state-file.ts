/** How far an import has come, so that it goes on there after a kill. */

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import { EXIT, ToolError } from '../client/tool.js';

export interface ImportState {
  readonly version: 1;
  /** Where points come from and go to: another import must not go on with this file. */
  readonly from: string;
  readonly to: string;
  /** Of the source; null: nothing is written yet. */
  readonly cursor: unknown;
  /** Points written. */
  readonly points: number;
}

/** Null without a file. Errors: ToolError for one that cannot be read, or that is about something else. */
export function readImportState(path: string, from: string, to: string): ImportState | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new ToolError(`${path}: ${(error as Error).message}`, EXIT.refused);
  }
  const state = stateOf(text);
  if (state === null) throw new ToolError(`${path} is no state of an import: begin anew with --restart`, EXIT.refused);
  if (state.from !== from || state.to !== to) {
    const other = `${path} is of an import from ${state.from} to ${state.to}`;
    throw new ToolError(`${other}: finish that one, begin anew with --restart, or name another file with --state`, EXIT.refused);
  }
  return state;
}

function stateOf(text: string): ImportState | null {
  try {
    const state = parseJson(text) as unknown as ImportState;
    return state?.version === 1 && typeof state.points === 'number' ? state : null;
  } catch {
    return null;
  }
}

/** A kill leaves the file as it was, or as it is to be. */
export function writeImportState(path: string, state: ImportState): void {
  const next = `${path}.next`;
  writeFileSync(next, stringifyJson(state));
  renameSync(next, path);
}

export function removeImportState(path: string): void {
  rmSync(path, { force: true });
}
