/** What an archive can be refused for. The code is `wrongInput`: whoever gave the archive has to give another one. */

import { type ErrorFacts, type ErrorOptions, errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';

/**
 * - `foreign`: no archive of Troupe, or a compressed one.
 * - `newer`: of a format that this release does not read.
 * - `truncated`: its end is missing.
 * - `member`: a member that the manifest does not have in this place, or one of a kind that archives do not have.
 * - `manifest`: the manifest has a value that it cannot have.
 * - `damaged`: bytes are not those that were packed.
 * - `tooLarge`: over a limit of whoever reads it.
 * - `wrongSha256`: not the archive that was asked for; `expected` and `actual` are there.
 * - `base`: it needs another archive, its base, which is not there or is another one.
 */
export type ArchiveProblem = 'foreign' | 'newer' | 'truncated' | 'member' | 'manifest' | 'damaged' | 'tooLarge' | 'wrongSha256' | 'base';

export interface ArchiveErrorFacts extends ErrorFacts {
  readonly problem: ArchiveProblem;
  /** SHA-256 in hex: see `wrongSha256`. */
  readonly expected?: string;
  readonly actual?: string;
}

export class ArchiveError extends TroupeError {
  /** SHA-256 that was asked for; undefined but for `wrongSha256`. */
  readonly expected: string | undefined;
  /** SHA-256 that the archive has; undefined but for `wrongSha256`. */
  readonly actual: string | undefined;

  constructor(
    readonly problem: ArchiveProblem,
    detail: string,
    options: ErrorOptions & { readonly expected?: string | undefined; readonly actual?: string | undefined } = {},
  ) {
    super('wrongInput', detail, options);
    this.name = 'ArchiveError';
    this.expected = options.expected;
    this.actual = options.actual;
  }
}

/** The facts of any thrown value as they cross a thread's boundary, those of an archive's error included. */
export function archiveErrorFacts(error: unknown): ErrorFacts | ArchiveErrorFacts {
  const facts = errorFacts(error);
  if (!(error instanceof ArchiveError)) return facts;
  const { actual, expected, problem } = error;
  return { ...facts, problem, ...(expected === undefined ? {} : { expected }), ...(actual === undefined ? {} : { actual }) };
}

/** The error whose facts crossed a thread's boundary. */
export function archiveErrorFromFacts(facts: ErrorFacts | ArchiveErrorFacts): TroupeError {
  if (!('problem' in facts)) return errorFromFacts(facts);
  const { detail, problem, ...options } = facts;
  return new ArchiveError(problem, detail, options);
}
