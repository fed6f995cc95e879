/** What an S3-compatible store refuses, as errors of the catalogue that say what to do. Decisions only. */

import { TroupeError } from '../../protocols/errors.js';

/** What messages name. */
export interface S3Target {
  readonly bucket: string;
  readonly region: string | null;
  readonly endpointUrl: string | null;
}

const KEYS = 'storage.snapshots_config.s3_config';
const UNREACHED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'TimeoutError',
]);
/** Names of errors, as the API of S3 has them, and what to do. */
const ADVICE: Readonly<Record<string, (target: S3Target) => string>> = {
  NoSuchBucket: ({ bucket }) => `the bucket ${bucket} does not exist: make it, or change \`${KEYS}.bucket\``,
  InvalidBucketName: ({ bucket }) => `${bucket} is no name of a bucket: change \`${KEYS}.bucket\``,
  AccessDenied: ({ bucket }) =>
    `access to the bucket ${bucket} is denied: allow these keys to list, read, write and delete its objects, and to give uploads up`,
  AllAccessDisabled: ({ bucket }) => `access to the bucket ${bucket} is switched off at the store`,
  InvalidAccessKeyId: () => `the store does not know the access key: change \`${KEYS}.access_key\``,
  SignatureDoesNotMatch: () => `the store does not accept the signature: check \`${KEYS}.secret_key\``,
  ExpiredToken: () => `the credentials have expired: renew them, or set \`${KEYS}.access_key\` and \`${KEYS}.secret_key\``,
  RequestTimeTooSkewed: () => 'the clocks of this machine and the store differ by too much: set the clock',
  PermanentRedirect: ({ bucket }) => `the bucket ${bucket} is in another region: change \`${KEYS}.region\``,
  AuthorizationHeaderMalformed: ({ bucket }) => `the bucket ${bucket} is in another region: change \`${KEYS}.region\``,
  IllegalLocationConstraintException: ({ bucket }) => `the bucket ${bucket} is in another region: change \`${KEYS}.region\``,
  CredentialsProviderError: () => `there are no credentials: set \`${KEYS}.access_key\` and \`${KEYS}.secret_key\``,
  QuotaExceeded: ({ bucket }) => `the bucket ${bucket} is full: remove snapshots, or raise its quota`,
};
const BY_STATUS: Readonly<Record<number, string>> = { 301: 'PermanentRedirect', 403: 'AccessDenied' };
const RETRY_AFTER_MS = 5_000;

/** Errors of the catalogue and those that no store or network has made are left as they are. */
export function s3Refusal(error: unknown, target: S3Target): unknown {
  if (error instanceof TroupeError) return error;
  const { code, name, status } = factsOf(error);
  const where = target.endpointUrl ?? `the S3 of ${target.region ?? 'its region'}`;
  const advice = ADVICE[name] ?? (status === undefined ? undefined : ADVICE[BY_STATUS[status] ?? '']);
  if (advice !== undefined) return refused(`${where}: ${advice(target)}`, error);
  const network = [code, name].find((word) => UNREACHED.has(word));
  if (network !== undefined) {
    return refused(`${where} cannot be reached (${network}): check \`${KEYS}.endpoint_url\` and the network, and try again`, error);
  }
  if (status !== undefined) return refused(`${where} has answered ${name} (status ${status}): try again later, or ask who runs it`, error);
  return error;
}

/** Whether the same call may do better a moment later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof TroupeError) return error.code === 'unavailable';
  const { code, name, status } = factsOf(error);
  if (ADVICE[name] !== undefined) return false;
  if (UNREACHED.has(code) || UNREACHED.has(name)) return true;
  return status !== undefined && (status >= 500 || status === 429 || status === 408) && status !== 501;
}

interface S3Facts {
  readonly name: string;
  /** Of the system. */
  readonly code: string;
  /** Of HTTP. */
  readonly status: number | undefined;
}

function factsOf(error: unknown): S3Facts {
  const { $metadata, code, name } = error as { $metadata?: { httpStatusCode?: number }; code?: unknown; name?: unknown };
  return {
    name: typeof name === 'string' ? name : '',
    code: typeof code === 'string' ? code : '',
    status: $metadata?.httpStatusCode,
  };
}

function refused(detail: string, cause: unknown): TroupeError {
  return new TroupeError('unavailable', detail, { cause, outcome: 'none', retryAfterMs: RETRY_AFTER_MS });
}
