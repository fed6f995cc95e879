/** The internal port cannot be used. */
export class PeerPortError extends Error {
  /** What the system said; undefined when it was something else. */
  readonly code: string | undefined;

  constructor(cause: NodeJS.ErrnoException) {
    super(cause.message, { cause });
    this.code = cause.code;
  }
}
