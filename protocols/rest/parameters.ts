/** Query parameters and path segments of requests: read and checked as the contract has it. */

import { TroupeError } from '../errors.js';
import type { ReadConsistency } from '../model/cluster.js';

/** Query parameters as the door decoded them; a parameter given twice is an array. */
export type QueryParameters = Readonly<Record<string, unknown>>;

export interface UpdateParameters {
  /** Answer after the update is applied and visible, not just safe. */
  readonly wait: boolean;
  readonly timeoutSeconds: number | undefined;
}

const TIMEOUT_SECONDS_MAX = 0xffff_ffff;
const COLLECTION_NAME_LENGTH_MAX = 255;
const FORBIDDEN_NAME_CHARACTERS = ['<', '>', ':', '"', '/', '\\', '|', '?', '*', '\0', '\u001f'];
const ORDERINGS = ['weak', 'medium', 'strong'];

export interface ReadParameters {
  /** Undefined: one replica of each shard will do. */
  readonly consistency: ReadConsistency | undefined;
  readonly timeoutSeconds: number | undefined;
  /** The answer is to say how it came about. */
  readonly explain: boolean;
}

/** Parameters of a read of points. Errors: malformedParameter. */
export function readParameters(query: QueryParameters): ReadParameters {
  return {
    consistency: consistencyOf(textParameter(query, 'consistency')),
    timeoutSeconds: pointsTimeout(query),
    explain: flagParameter(query, 'explain'),
  };
}

/**
 * Whether the `consistency` of a read of settings wants more than this node's own view: words do, and so does any number of
 * replicas above 1. Errors: malformedParameter.
 */
export function asksForAgreement(query: QueryParameters): boolean {
  const level = consistencyOf(textParameter(query, 'consistency'));
  return level !== undefined && level !== 1;
}

/** Parameters of a write to points or payload indexes. Errors: malformedParameter. */
export function updateParameters(query: QueryParameters): UpdateParameters {
  const ordering = textParameter(query, 'ordering');
  if (ordering !== undefined && !ORDERINGS.includes(ordering)) {
    throw new TroupeError('malformedParameter', `unknown variant \`${ordering}\`, expected one of \`weak\`, \`medium\`, \`strong\``);
  }
  return { wait: flagParameter(query, 'wait'), timeoutSeconds: pointsTimeout(query) };
}

/** `timeout` in seconds of a change of collections. Errors: malformedParameter, and invalidParameter for 0. */
export function collectionTimeout(query: QueryParameters): number | undefined {
  const seconds = unsigned(query, 'timeout');
  if (seconds === 0) throw new TroupeError('invalidParameter', '[timeout: value 0 invalid, must be 1 or larger]');
  return seconds;
}

/** A parameter that is `true` or `false`; false when absent. Errors: malformedParameter. */
export function flagParameter(query: QueryParameters, name: string): boolean {
  const value = textParameter(query, name);
  if (value === undefined || value === 'false') return false;
  if (value === 'true') return true;
  throw new TroupeError('malformedParameter', `${name}: provided string was not \`true\` or \`false\``);
}

/** A parameter that is an unsigned 32-bit integer. Errors: malformedParameter. */
export function unsigned(query: QueryParameters, name: string): number | undefined {
  const value = textParameter(query, name);
  if (value === undefined) return undefined;
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!(number <= TIMEOUT_SECONDS_MAX)) throw new TroupeError('malformedParameter', `${name}: \`${value}\` is not an unsigned integer`);
  return number;
}

/** A parameter's text; undefined when absent. Errors: malformedParameter when it is given twice. */
export function textParameter(query: QueryParameters, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw new TroupeError('malformedParameter', `duplicate field \`${name}\``);
}

/** Checks a collection name of a path: 1 to 255 characters. Errors: invalidPath. */
export function checkCollectionName(name: string): void {
  // A UTF-16 length within the bound needs no counting of characters.
  if (name.length >= 1 && name.length <= COLLECTION_NAME_LENGTH_MAX) return;
  const characters = [...name].length;
  if (characters >= 1 && characters <= COLLECTION_NAME_LENGTH_MAX) return;
  const detail = `[collection_name: value ${JSON.stringify(name)} invalid, must be from 1 to ${COLLECTION_NAME_LENGTH_MAX} characters]`;
  throw new TroupeError('invalidPath', detail);
}

/** Checks the name of a collection that is to be made: `checkCollectionName`, and no character that file systems reserve. */
export function checkNewCollectionName(name: string): void {
  checkCollectionName(name);
  const forbidden = forbiddenCharacter(name);
  if (forbidden !== undefined)
    throw new TroupeError('invalidPath', `[collection_name: collection name cannot contain "${forbidden}" char]`);
}

/** The first character of a new collection's or vector's name that names may not have; undefined for none. */
export function forbiddenCharacter(name: string): string | undefined {
  return FORBIDDEN_NAME_CHARACTERS.find((character) => name.includes(character));
}

function pointsTimeout(query: QueryParameters): number | undefined {
  const seconds = unsigned(query, 'timeout');
  if (seconds === 0)
    throw new TroupeError('malformedParameter', 'timeout: invalid value: integer `0`, expected whole seconds, 1 or larger');
  return seconds;
}

function consistencyOf(value: string | undefined): ReadConsistency | undefined {
  if (value === undefined || value === 'all' || value === 'majority' || value === 'quorum') return value;
  if (/^\d+$/.test(value) && Number(value) >= 1) return Number(value);
  throw new TroupeError(
    'malformedParameter',
    `failed to deserialize read consistency query parameter value '${value}': expected \`majority\`, \`quorum\`, \`all\` or a number of replicas, 1 or larger`,
  );
}
