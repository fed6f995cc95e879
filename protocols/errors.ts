/** The catalogue of errors a caller can meet. A code earns its row when a caller would act differently on it. */

export interface ErrorKind {
  readonly restStatus: number;
  /** gRPC status code by its number. */
  readonly grpcStatus: number;
  /** Prefix of the message, as clients know it. */
  readonly prefix: string;
}

export const ERROR_KINDS = {
  /** The body is no JSON or not of the request's type. */
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
  /** The request names something that this collection does not have, where clients know the error by this prefix. */
  badRequest: { restStatus: 400, grpcStatus: 3, prefix: 'Bad request: ' },
  /** An option that this release cannot carry out. */
  unsupported: { restStatus: 400, grpcStatus: 12, prefix: 'Not supported: ' },
  /** Only a cluster could do it, and this node is not part of one. */
  standalone: { restStatus: 400, grpcStatus: 9, prefix: 'Bad request: ' },
  notFound: { restStatus: 404, grpcStatus: 5, prefix: 'Not found: ' },
  conflict: { restStatus: 409, grpcStatus: 6, prefix: 'Wrong input: ' },
  forbidden: { restStatus: 403, grpcStatus: 7, prefix: 'Forbidden: ' },
  bodyTooLarge: { restStatus: 400, grpcStatus: 8, prefix: '' },
  /** A bounded queue is full; retry after `retryAfterMs`. */
  busy: { restStatus: 429, grpcStatus: 8, prefix: 'Too many requests: ' },
  /** More than the collection lets through in a minute (strict mode); where waiting helps, retry after `retryAfterMs`. */
  rateLimited: { restStatus: 429, grpcStatus: 8, prefix: 'Rate limiting exceeded: ' },
  /** The node or a replica cannot serve now. */
  unavailable: { restStatus: 503, grpcStatus: 14, prefix: 'Service unavailable: ' },
  timeout: { restStatus: 408, grpcStatus: 4, prefix: 'Timeout: ' },
  /** Stored data is damaged or cannot be read. */
  storage: { restStatus: 500, grpcStatus: 15, prefix: 'Storage error: ' },
  internal: { restStatus: 500, grpcStatus: 13, prefix: 'Service internal error: ' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_KINDS;

/** An error as it crosses a thread or process boundary. */
export interface ErrorFacts {
  readonly code: ErrorCode;
  /** What went wrong and what to change, without the catalogue's prefix. */
  readonly detail: string;
  readonly retryAfterMs?: number;
}

/** An expected failure with its catalogue row. Everything else that is thrown is a bug. */
export class TroupeError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, detail: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    const shown = quotable(detail);
    super(ERROR_KINDS[code].prefix + shown, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TroupeError';
    this.code = code;
    this.detail = shown;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The facts of any thrown value, ready to cross a boundary; an unexpected one becomes `internal`. */
export function errorFacts(error: unknown): ErrorFacts {
  if (error instanceof TroupeError) {
    return error.retryAfterMs === undefined
      ? { code: error.code, detail: error.detail }
      : { code: error.code, detail: error.detail, retryAfterMs: error.retryAfterMs };
  }
  return { code: 'internal', detail: quotable(error instanceof Error ? error.message : String(error)) };
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

/** The error whose facts crossed a boundary. */
export function errorFromFacts(facts: ErrorFacts): TroupeError {
  return new TroupeError(facts.code, facts.detail, facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs });
}
