/** What requests about snapshots say: parameters, parts of paths, and the body of a recovery. */

import { parseDatetime } from '../datetime.js';
import { TroupeError } from '../errors.js';
import type { ShardId } from '../model/cluster.js';
import type { JsonValue } from '../model/payload.js';
import { Fields, wrongType } from './fields.js';
import { flagParameter, type QueryParameters, textParameter } from './parameters.js';

/** In the order in which errors list them. */
export const RESTORE_PRIORITIES = ['no_sync', 'snapshot', 'replica'] as const;

type Priority = (typeof RESTORE_PRIORITIES)[number];

export interface RestoreParameters {
  readonly priority: Priority;
  /** SHA-256 in lower-case hexadecimal digits; null: none is given. */
  readonly checksum: string | null;
  /** Restore to a point in time: `until` in milliseconds, and `dry_run`. Null: the snapshot as it is. */
  readonly until: { readonly timeMs: number; readonly dryRun: boolean } | null;
}

/** The body of a recovery. */
export interface Recovery extends RestoreParameters {
  readonly location: string;
  readonly apiKey: string | null;
}

const DEFAULT_PRIORITY: Priority = 'replica';
const SHA256_DIGITS = 64;
const SHARD_ID_MAX = 0xffff_ffff;

/** `wait` of an operation on snapshots: true without it. Errors: `malformedParameter`. */
export function snapshotWait(query: QueryParameters): boolean {
  return query.wait === undefined || flagParameter(query, 'wait');
}

/** Parameters of an upload. Errors: `malformedParameter` for their forms, `invalidParameter` for the checksum, `wrongInput` for some that do not go together. */
export function restoreParameters(query: QueryParameters): RestoreParameters {
  const priority = textParameter(query, 'priority');
  if (priority !== undefined && !isPriority(priority)) throw new TroupeError('malformedParameter', unknownPriority(priority));
  const checksum = textParameter(query, 'checksum');
  if (checksum !== undefined && !isSha256(checksum)) throw new TroupeError('invalidParameter', wrongChecksum(checksum));
  const until = untilOf(textParameter(query, 'until'), flagParameter(query, 'dry_run'), priority, 'malformedParameter');
  return { priority: priority ?? defaultPriority(until), checksum: checksum?.toLowerCase() ?? null, until };
}

/**
 * The body of a recovery. mayBeName: a location that is no URL is the name of a snapshot. Errors: `malformedBody`; `invalidValue` for the
 * checksum; `wrongInput` for fields that do not go together.
 */
export function decodeRecovery(body: JsonValue, mayBeName: boolean): Recovery {
  const fields = Fields.of(body, '');
  const text = (name: string): string | undefined => {
    const value = fields.value(name);
    if (value === undefined || typeof value === 'string') return value;
    throw wrongType(name, value, 'a string');
  };
  const location = text('location');
  if (location === undefined) throw new TroupeError('malformedBody', 'missing field `location`');
  if (!mayBeName && !URL.canParse(location))
    throw new TroupeError('malformedBody', `\`location\`: relative URL without a base: ${JSON.stringify(location)}`);
  const priority = text('priority');
  if (priority !== undefined && !isPriority(priority)) throw new TroupeError('malformedBody', `\`priority\`: ${unknownPriority(priority)}`);
  const checksum = text('checksum');
  if (checksum !== undefined && !isSha256(checksum)) throw new TroupeError('invalidValue', wrongChecksum(checksum));
  const dryRun = fields.value('dry_run');
  if (dryRun !== undefined && typeof dryRun !== 'boolean') throw wrongType('dry_run', dryRun, 'a boolean');
  const until = untilOf(text('until'), dryRun === true, priority, 'malformedBody');
  return {
    location,
    priority: priority ?? defaultPriority(until),
    checksum: checksum?.toLowerCase() ?? null,
    until,
    apiKey: text('api_key') ?? null,
  };
}

/** The id of a shard in a path. Errors: `wrongInput`. */
export function shardIdFromText(text: string): ShardId {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= SHARD_ID_MAX) return id;
  throw new TroupeError('wrongInput', `${JSON.stringify(text)} is not a shard id: expected an unsigned integer of 32 bits`);
}

function defaultPriority(until: RestoreParameters['until']): Priority {
  return until === null ? DEFAULT_PRIORITY : 'snapshot';
}

/** priority: as it was given. */
function untilOf(
  text: string | undefined,
  dryRun: boolean,
  priority: Priority | undefined,
  code: 'malformedBody' | 'malformedParameter',
): RestoreParameters['until'] {
  if (text === undefined) {
    if (dryRun) throw new TroupeError('wrongInput', '`dry_run` goes with `until`');
    return null;
  }
  const micros = parseDatetime(text);
  if (micros === undefined)
    throw new TroupeError(code, `\`until\`: '${text}' does not match accepted datetime format (RFC3339). Example: 2014-01-01T00:00:00Z`);
  if (priority !== undefined && priority !== 'snapshot')
    throw new TroupeError(
      'wrongInput',
      `\`until\` goes with priority \`snapshot\`, which is the default then, and not with \`${priority}\``,
    );
  return { timeMs: Math.floor(micros / 1000), dryRun };
}

function isPriority(text: string): text is Priority {
  return (RESTORE_PRIORITIES as readonly string[]).includes(text);
}

/** Source: contract, scenario `snapshots-collection`, step `upload-bad-priority`. */
function unknownPriority(text: string): string {
  return `unknown variant \`${text}\`, expected one of ${RESTORE_PRIORITIES.map((priority) => `\`${priority}\``).join(', ')}`;
}

function isSha256(text: string): boolean {
  return text.length === SHA256_DIGITS && /^[\da-f]+$/i.test(text);
}

/** Source: contract, scenario `snapshots-collection`, step `upload-bad-checksum`. */
function wrongChecksum(text: string): string {
  const facts = `"length": Number(${[...text].length}), "expected_length": Number(${SHA256_DIGITS}), "value": String(${JSON.stringify(text)})`;
  return `[checksum: Validation error: invalid_sha256_hash [{${facts}}]]`;
}
