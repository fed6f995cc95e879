/** Promises that this program makes to itself. One that is broken is a fault of the program, never of a request. */

/** Area and number of a rule, as a README or a file's header defines it: `Raft-R3`. */
export type RuleId = `${string}-${string}`;

/**
 * Thrown where a promise is broken. It is no catalogue error: whoever catches those to go on must not catch this one. An actor that
 * throws it crashes, and its supervisor starts it again from what is on disk.
 */
export class BrokenInvariant extends Error {
  constructor(
    /** The rule's id in the READMEs: `Raft-R3`. */
    readonly id: RuleId,
    facts: string,
  ) {
    super(`invariant ${id} is broken: ${facts}`);
    this.name = 'BrokenInvariant';
  }
}

/** For a `catch` of expected failures: a broken promise is none of them. Errors: `error`, if it is a `BrokenInvariant`. */
export function rethrowBroken(error: unknown): void {
  if (error instanceof BrokenInvariant) throw error;
}

/**
 * Stops the actor unless `condition` holds. id: of the rule that promises it. facts: the values that break it, for whoever reads the
 * log; a function where making the text costs something.
 */
export function invariant(condition: boolean, id: RuleId, facts: string | (() => string)): asserts condition {
  if (!condition) throw new BrokenInvariant(id, typeof facts === 'string' ? facts : facts());
}
