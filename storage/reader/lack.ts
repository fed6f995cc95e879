/** Errors of reads that met a lack of this machine: nothing is damaged, and the same read may be answered soon, or by another node. */

import { outcomeOf, TroupeError } from '../../protocols/errors.js';

/** What is lacking is mostly what other requests and builds have for the moment. */
export const LACK_RETRY_MS = 5000;

/** Codes of the system for what is used up, and what to do. */
const LACKS: Readonly<Record<string, string>> = {
  EMFILE: 'this node can open no more files now: retry; if it stays so, raise `ulimit -n` or have fewer collections or shards on this node',
  ENFILE: 'this machine can open no more files now: retry; if it stays so, raise `fs.file-max`',
  ENOMEM: 'this machine has no memory or addresses left for it: retry; if it stays so, give the node more memory or raise `ulimit -v`',
  EAGAIN: 'this machine refuses it for now: retry',
};

/**
 * `unavailable` with `retryAfterMs` for an error of something that is lacking (a storage error of outcome `none`, or one that such a code of the system caused);
 * any other error as it is.
 */
export function lackAsUnavailable<Given>(error: Given): Given | TroupeError {
  if (!(error instanceof TroupeError) || error.code !== 'storage' || error.reason === 'damaged') return error;
  const advice = LACKS[(error.cause as NodeJS.ErrnoException | undefined)?.code ?? ''];
  if (advice === undefined && outcomeOf(error) !== 'none') return error;
  const says = outcomeOf(error) === 'none' || advice === undefined ? error.detail : `${error.detail}; ${advice}`;
  return new TroupeError('unavailable', says, { retryAfterMs: LACK_RETRY_MS, cause: error });
}
