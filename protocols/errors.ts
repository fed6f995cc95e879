/**
 * The catalogue of errors a caller can meet. A code earns its row when a client would act differently on it, a reason when a part of
 * Troupe does. Nothing decides by the text of an error: whoever acts on one reads its code, its reason or its outcome.
 */

/**
 * Whether an operation that ended with an error may be carried out. `none`: nothing of it was carried out by whoever says so, nor will be.
 * `unknown`: it may have been carried out, may be later, or is so in part. Of an operation that changes nothing it says nothing.
 */
export type ErrorOutcome = 'none' | 'unknown';

export interface ErrorKind {
  readonly restStatus: number;
  /** gRPC status code by its number. */
  readonly grpcStatus: number;
  /** Of errors that say nothing else: `unknown` where they can follow after something was logged; default `none`. */
  readonly outcome?: ErrorOutcome;
  /** Prefix of the message, as clients know it. */
  readonly prefix: string;
}

export const ERROR_KINDS = {
  /** The body is not JSON or not of the request's type. */
  malformedBody: { restStatus: 400, grpcStatus: 3, prefix: 'Format error in JSON body: ' },
  /** A query parameter cannot be read. */
  malformedParameter: { restStatus: 400, grpcStatus: 3, prefix: 'Deserialize error in query parameters: ' },
  /** A value is of the right type but out of its range. */
  invalidValue: { restStatus: 422, grpcStatus: 3, prefix: 'Validation error in JSON body: ' },
  /** A query parameter or a part of the path is out of its range. */
  invalidParameter: { restStatus: 422, grpcStatus: 3, prefix: 'Validation error in query parameters: ' },
  invalidPath: { restStatus: 422, grpcStatus: 3, prefix: 'Validation error in path parameters: ' },
  /** The request does not fit this collection. */
  wrongInput: { restStatus: 400, grpcStatus: 3, prefix: 'Wrong input: ' },
  /** The request asks for what it cannot have in this form, or of this collection, where clients know the error by this prefix. */
  badRequest: { restStatus: 400, grpcStatus: 3, prefix: 'Bad request: ' },
  /** An option that this release cannot carry out. */
  unsupported: { restStatus: 400, grpcStatus: 12, prefix: 'Not supported: ' },
  /** Only a cluster could do it, and this node is not part of one. */
  standalone: { restStatus: 400, grpcStatus: 9, prefix: 'Bad request: ' },
  notFound: { restStatus: 404, grpcStatus: 5, prefix: 'Not found: ' },
  /** The path takes other methods. */
  methodNotAllowed: { restStatus: 405, grpcStatus: 12, prefix: 'Method not allowed: ' },
  conflict: { restStatus: 409, grpcStatus: 6, prefix: 'Wrong input: ' },
  /** The request has no key and no token, or what it has is neither. */
  unauthorized: { restStatus: 401, grpcStatus: 16, prefix: '' },
  /** The request has a token that is not in force, or was signed by somebody else: another one may do. */
  tokenRefused: { restStatus: 403, grpcStatus: 7, prefix: '' },
  /** Whoever sends the request is known, and may not do this. */
  forbidden: { restStatus: 403, grpcStatus: 7, prefix: 'Forbidden: ' },
  bodyTooLarge: { restStatus: 400, grpcStatus: 8, prefix: '' },
  /** The body is packed in a way that cannot be read. */
  unreadableCoding: { restStatus: 415, grpcStatus: 12, prefix: 'Unsupported media type: ' },
  /** A bounded queue is full; retry after `retryAfterMs`. */
  busy: { restStatus: 429, grpcStatus: 8, prefix: 'Too many requests: ' },
  /** What it would take is more memory than this node has left; retry after `retryAfterMs`. */
  outOfMemory: { restStatus: 507, grpcStatus: 8, prefix: 'Out of memory: ' },
  /** What it would take is more of the disk than stays free; retry after `retryAfterMs`. */
  outOfDisk: { restStatus: 507, grpcStatus: 8, prefix: 'Out of disk space: ' },
  /** More than the collection lets through in a minute (strict mode); where waiting helps, retry after `retryAfterMs`. */
  rateLimited: { restStatus: 429, grpcStatus: 8, prefix: 'Rate limiting exceeded: ' },
  /** The node or a replica cannot serve now. One that lost what it had begun says `unknown`. */
  unavailable: { restStatus: 503, grpcStatus: 14, prefix: 'Service unavailable: ' },
  timeout: { restStatus: 408, grpcStatus: 4, outcome: 'unknown', prefix: 'Timeout: ' },
  /** Stored data is damaged or cannot be read. */
  storage: { restStatus: 500, grpcStatus: 15, outcome: 'unknown', prefix: 'Storage error: ' },
  internal: { restStatus: 500, grpcStatus: 13, outcome: 'unknown', prefix: 'Service internal error: ' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_KINDS;

/** What parts of Troupe act on, with the outcome of errors that say nothing else. Clients are told codes and outcomes. */
export const ERROR_REASONS = {
  /** Another replica leads the shard, or is about to: ask the one that does. */
  notLeader: 'none',
  /** The asked node knows another `shardMapVersion` of the collection: both will soon know the same one. */
  shardMapChanged: 'none',
  /** Writes of the shard wait until its points are with another shard. */
  shardMigrating: 'none',
  /** The asked node has no such replica of the collection: not yet, or not any more. */
  replicaNotHere: 'none',
  /** The asked replica is here and serves no reads now, or not what it has begun to serve. */
  replicaNotServing: 'none',
  /** The asked node takes no calls of peers now, or none of the one that calls. */
  peerRefused: 'none',
  /** Points that are copied come after later ones of the same shard. */
  staleCopy: 'none',
  /** The read asks for points of a collection whose shards may be on other nodes. */
  otherCollection: 'none',
  /** The operation was logged, and refused when it was applied: those of its request before it were carried out. */
  failedOnApply: 'none',
  /** Stored data are not what was written: trying again finds the same. */
  damaged: 'unknown',
  /** A segment of so many rows does not fit in a memory: split it. */
  segmentTooLarge: 'none',
  /** Another change of the same thing was agreed first: make the change again, of the newest. */
  changedMeanwhile: 'none',
  /** A peer that was chosen to hold a replica has left, or is leaving: choose again. */
  placementChanged: 'none',
  /** A node asks to join at the address of a member that is there: only an operator can say which of the two is meant. */
  addressTaken: 'none',
  /** The log of a replica could not keep what follows a checkpoint: with its files alone a transfer cannot go on. */
  checkpointLost: 'none',
  /** There was no connection to send the call on. */
  notReached: 'none',
  /** The call has left this node, and no answer has come. */
  answerLost: 'unknown',
  /** The actor that had the request has crashed, or was stopped, before it could answer. */
  actorCrashed: 'unknown',
} as const satisfies Record<string, ErrorOutcome>;

export type ErrorReason = keyof typeof ERROR_REASONS;

/** Of the way between two nodes: whoever answers a call does not pass them on as its own. */
const ON_THE_WAY: ReadonlySet<ErrorReason | undefined> = new Set<ErrorReason>(['notReached', 'answerLost']);

/** An error as it crosses a thread or process boundary. */
export interface ErrorFacts {
  readonly code: ErrorCode;
  /** What went wrong and what to change, without the catalogue's prefix. For people: nothing decides by it. */
  readonly detail: string;
  readonly retryAfterMs?: number;
  readonly reason?: ErrorReason;
  /** Where it is not the catalogue's: see `outcomeOf`. */
  readonly outcome?: ErrorOutcome;
  /** The field of `strict_mode_config` that the request goes beyond. */
  readonly limit?: string;
}

export interface ErrorOptions {
  readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined;
  readonly reason?: ErrorReason | undefined;
  readonly outcome?: ErrorOutcome | undefined;
  readonly limit?: string | undefined;
}

/** An expected failure with its catalogue row. Everything else that is thrown is a bug. */
export class TroupeError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly retryAfterMs: number | undefined;
  readonly reason: ErrorReason | undefined;
  readonly outcome: ErrorOutcome;
  readonly limit: string | undefined;

  constructor(code: ErrorCode, detail: string, options: ErrorOptions = {}) {
    const shown = quotable(detail);
    super(ERROR_KINDS[code].prefix + shown, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TroupeError';
    this.code = code;
    this.detail = shown;
    this.retryAfterMs = options.retryAfterMs;
    this.reason = options.reason;
    this.outcome = options.outcome ?? defaultOutcome(code, options.reason);
    this.limit = options.limit;
  }
}

/** Whether the operation may be carried out. */
export function outcomeOf({ code, outcome, reason }: Pick<ErrorFacts, 'code' | 'outcome' | 'reason'>): ErrorOutcome {
  return outcome ?? defaultOutcome(code, reason);
}

function defaultOutcome(code: ErrorCode, reason: ErrorReason | undefined): ErrorOutcome {
  if (reason !== undefined) return ERROR_REASONS[reason];
  const kind: ErrorKind = ERROR_KINDS[code];
  return kind.outcome ?? 'none';
}

/** The reason of any thrown value; undefined when it has none. */
export function reasonOf(error: unknown): ErrorReason | undefined {
  return error instanceof TroupeError ? error.reason : undefined;
}

/** The facts of any thrown value, ready to cross a boundary; an unexpected one becomes `internal`. */
export function errorFacts(error: unknown): ErrorFacts {
  if (!(error instanceof TroupeError)) {
    return { code: 'internal', detail: quotable(error instanceof Error ? error.message : String(error)) };
  }
  const { code, detail, limit, outcome, reason, retryAfterMs } = error;
  return {
    code,
    detail,
    ...(limit === undefined ? {} : { limit }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(reason === undefined ? {} : { reason }),
    ...(outcome === defaultOutcome(code, reason) ? {} : { outcome }),
  };
}

/** As `errorFacts`, for another node, whose release may have another catalogue: the outcome is always there. */
export function factsForPeer(facts: ErrorFacts): ErrorFacts {
  const { reason, ...rest } = facts;
  return { ...rest, ...(reason === undefined || ON_THE_WAY.has(reason) ? {} : { reason }), outcome: outcomeOf(facts) };
}

/**
 * What another node says of an error. Its release may be a later one: a code that this one doesn't know is `internal`, a reason that it
 * doesn't know is left out, and an outcome that it cannot read is `unknown`.
 */
export function factsFromPeer(said: Readonly<Partial<Record<keyof ErrorFacts, unknown>>>): ErrorFacts {
  const { code, detail, limit, outcome, reason, retryAfterMs } = said;
  return {
    code: isNameOf(ERROR_KINDS, code) ? code : 'internal',
    detail: typeof detail === 'string' ? detail : '',
    ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
    ...(typeof limit === 'string' ? { limit } : {}),
    ...(isNameOf(ERROR_REASONS, reason) && !ON_THE_WAY.has(reason) ? { reason } : {}),
    outcome: outcome === 'none' ? 'none' : 'unknown',
  };
}

function isNameOf<Names extends object>(names: Names, value: unknown): value is keyof Names {
  return typeof value === 'string' && Object.hasOwn(names, value);
}

/** The error whose facts crossed a boundary. */
export function errorFromFacts({ code, detail, ...options }: ErrorFacts): TroupeError {
  return new TroupeError(code, detail, options);
}

/** Any thrown value as an error of the catalogue; an unexpected one becomes `internal`. */
export function asTroupeError(error: unknown): TroupeError {
  return error instanceof TroupeError ? error : errorFromFacts(errorFacts(error));
}

/** Messages quote what was sent, which may be megabytes; gRPC carries them in a header. */
const DETAIL_LENGTH_MAX = 800;

/** What is no text, and what decoders have made of that, is shown the same way wherever the message comes from. */
const NO_TEXT = /[\p{Cs}\ufffd]+/gu;

function quotable(detail: string): string {
  return shortened(detail).replace(NO_TEXT, '\ufffd');
}

function shortened(detail: string): string {
  if (detail.length <= DETAIL_LENGTH_MAX) return detail;
  // Not between the halves of a surrogate pair.
  const tail = detail.slice(-DETAIL_LENGTH_MAX / 2).replace(/^[\udc00-\udfff]/, '');
  return `${detail.slice(0, DETAIL_LENGTH_MAX / 2).replace(/[\ud800-\udbff]$/, '')} … ${tail}`;
}
