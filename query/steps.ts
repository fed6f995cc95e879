/**
 * Algorithms that ask while they run: they yield what they want to know and are given it. So the same one runs over rows of this thread,
 * which answer at once, and over those of other nodes, which take their time.
 */

export type Steps<Question, Answer, Result> = Generator<Question, Result, Answer>;

/** Runs the algorithm to its end. */
export function runSteps<Question, Answer, Result>(steps: Steps<Question, Answer, Result>, answer: (question: Question) => Answer): Result {
  let step = steps.next();
  while (step.done !== true) step = steps.next(answer(step.value));
  return step.value;
}

/** The same with answers that come later. Errors: those of `answer` end it. */
export async function runStepsLater<Question, Answer, Result>(
  steps: Steps<Question, Answer, Result>,
  answer: (question: Question) => Promise<Answer>,
): Promise<Result> {
  let step = steps.next();
  while (step.done !== true) step = steps.next(await answer(step.value));
  return step.value;
}
