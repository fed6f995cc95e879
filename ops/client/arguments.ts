/** What the tools that ask a node have in common: their words and options. */

import { createInterface } from 'node:readline/promises';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import { CONNECTION_OPTIONS } from './connection.js';
import { type ToolError, wrongArguments } from './tool.js';

type Options = NonNullable<ParseArgsConfig['options']>;
type Settings<Own extends Options> = { args: string[]; options: typeof CONNECTION_OPTIONS & Own; strict: true; allowPositionals: true };

/** The words and options of a tool's arguments. Errors: those of `parseArgs`. */
export function readArguments<const Own extends Options>(args: readonly string[], own: Own): ReturnType<typeof parseArgs<Settings<Own>>> {
  const options = { ...CONNECTION_OPTIONS, ...own };
  return parseArgs<Settings<Own>>({ args: [...args], options, strict: true, allowPositionals: true });
}

/**
 * The words behind an action, as many as `names` says; the last one may be left out where its name ends in `?`. action: null where the
 * tool has none. Errors: ToolError.
 */
export function argumentWords(action: string | null, given: readonly string[], ...names: readonly string[]): string[] {
  const needed = names.filter((name) => !name.endsWith('?'));
  const of = action === null ? '' : `${action}: `;
  if (given.length < needed.length) throw wrongArguments(`${of}<${needed[given.length]}> is missing`);
  if (given.length > names.length) throw wrongArguments(`${of}'${given[names.length]}' is too much`);
  return [...given];
}

/** The action of a tool is none of these. */
export function wrongAction(action: string | undefined, ...actions: readonly string[]): ToolError {
  const known = `${actions.slice(0, -1).join(', ')} or ${actions.at(-1)}`;
  return wrongArguments(action === undefined ? `say what to do: ${known}` : `'${action}' is not ${known}`);
}

/** A whole number. Errors: ToolError. */
export function wholeNumber(option: string, text: string, min = 0): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < min)
    throw wrongArguments(`${option}: '${text}' is no whole number${min > 0 ? ` from ${min} on` : ''}`);
  return value;
}

/** A JSON value without loss of digits. Errors: ToolError, with an example. */
export function jsonOption(option: string, text: string, example: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw wrongArguments(`${option}: no JSON such as ${example}: ${(error as Error).message}`);
  }
}

/** An id of a point: digits are a number, everything else a UUID, which the node checks. */
export function pointId(text: string): number | bigint | string {
  if (!/^\d{1,20}$/.test(text)) return text;
  const id = BigInt(text);
  return id <= Number.MAX_SAFE_INTEGER ? Number(id) : id;
}

/** A line for programs. */
export function jsonLine(value: unknown): string {
  return `${stringifyJson(value)}\n`;
}

/** Asks on the terminal before something is gone for good. Errors: ToolError where nobody can be asked, or the answer is no. */
export async function confirm(question: string, isAgreed: boolean): Promise<void> {
  if (isAgreed) return;
  if (process.stdin.isTTY !== true) throw wrongArguments(`${question} Say so with --yes`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await lines.question(`${question} [y/N] `);
  lines.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw wrongArguments('nothing was done');
}

/** All of standard input as text. */
export async function standardInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
