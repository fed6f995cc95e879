/**
 * Whether what clients saw can have happened one after the other, each operation at some moment between its call and its
 * answer. Source: Wing and Gong, «Testing and Verifying Concurrent Objects» (1993), with states that were tried before left
 * out (Lowe, 2017).
 */

export interface Call<Operation, Answer> {
  readonly operation: Operation;
  /** Any clock that goes on from event to event. */
  readonly called: number;
  /** Infinity: never, so it may happen at any later time or not at all. */
  readonly answered: number;
  /** Null where nobody knows: it was not answered, or with an error that leaves it open. */
  readonly answer: Answer | null;
}

export interface Model<State, Operation, Answer> {
  readonly start: State;
  /** The state after the operation; null where it cannot have been answered so. answer null: whatever it was. */
  step(state: State, operation: Operation, answer: Answer | null): State | null;
  /** Equal texts for equal states. */
  key(state: State): string;
}

/** `undecided`: too many orders to try. */
export type Verdict = 'linearizable' | 'impossible' | 'undecided';

const STEPS_MAX = 300_000;

export function checkLinearizable<State, Operation, Answer>(
  calls: readonly Call<Operation, Answer>[],
  model: Model<State, Operation, Answer>,
): Verdict {
  // Those with an answer first: the others are tried only where it takes them.
  const order = [...calls].sort((one, other) => one.answered - other.answered || one.called - other.called);
  const known = order.filter((call) => call.answered !== Infinity).length;
  const done = new Uint8Array(order.length);
  const tried = new Set<string>();
  let steps = 0;

  function search(state: State, left: number): boolean {
    if (left === 0) return true;
    if (++steps > STEPS_MAX) return false;
    const place = `${String.fromCharCode(...done)}${model.key(state)}`;
    if (tried.has(place)) return false;
    tried.add(place);
    let until = Infinity;
    for (let at = 0; at < known; at++) {
      if (done[at] === 0) {
        until = (order[at] as Call<Operation, Answer>).answered;
        break;
      }
    }
    for (let at = 0; at < order.length; at++) {
      const call = order[at] as Call<Operation, Answer>;
      if (done[at] === 1 || call.called > until) continue;
      const next = model.step(state, call.operation, call.answer);
      if (next === null) continue;
      // An open operation that changes nothing needs no place.
      if (at >= known && model.key(next) === model.key(state)) continue;
      done[at] = 1;
      if (search(next, at < known ? left - 1 : left)) return true;
      done[at] = 0;
    }
    return false;
  }

  if (search(model.start, known)) return 'linearizable';
  return steps > STEPS_MAX ? 'undecided' : 'impossible';
}
