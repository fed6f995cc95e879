/**
 * What a state machine does, found by running it: from its first states, every sample input in every state that is reached. So a diagram
 * shows moves that the code makes, and a test sees whether the samples reach every cell of the table.
 */

import type { Tagged } from '../../protocols/machine.js';

/** A cell of a table is the function that decides; its name is the name of the move. */
export type Cells = Readonly<Record<string, Readonly<Record<string, { readonly name: string }>>>>;

export interface Machine<State extends Tagged, Input extends Tagged> {
  readonly step: (state: State, input: Input) => { readonly state: State };
  /** The states that a life begins in. */
  readonly starts: readonly State[];
  /** Inputs to try in a state: together with those of other states they reach every cell that is not ignored. */
  readonly inputs: (state: State) => readonly Input[];
}

export interface Walked {
  /** Kinds of the states that a life begins in. */
  readonly starts: readonly string[];
  /** By `from`, then `to`: the inputs that led from one state to another. A state's moves to itself are left out. */
  readonly arrows: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;
  /** `<state> <input>` of every pair that was tried. */
  readonly tried: ReadonlySet<string>;
}

/** States that are visited at most: some machines count failures, and have no last state. */
const STATES_MAX = 1000;

export function walk<State extends Tagged, Input extends Tagged>({ inputs, starts, step }: Machine<State, Input>): Walked {
  const arrows = new Map<string, Map<string, Set<string>>>();
  const tried = new Set<string>();
  const seen = new Set(starts.map(keyOf));
  const waiting = [...starts];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const state = next;
    for (const input of inputs(state)) {
      tried.add(`${state.kind} ${input.kind}`);
      const to = step(state, input).state;
      if (to.kind !== state.kind) noteArrow(arrows, state.kind, to.kind, input.kind);
      const key = keyOf(to);
      if (seen.has(key) || seen.size >= STATES_MAX) continue;
      seen.add(key);
      waiting.push(to);
    }
  }
  return { starts: [...new Set(starts.map(({ kind }) => kind))], arrows, tried };
}

/** Cells of this name change nothing. */
export function isIdle(move: string): boolean {
  return move === 'ignore' || move === 'stay';
}

/** Pairs of the table that decide something (`unasked` stops the actor: nothing may come there) and that the walk has not tried: `<state> <input>`. */
export function untried(table: Cells, { tried }: Walked): string[] {
  return Object.entries(table).flatMap(([state, row]) =>
    Object.entries(row)
      .filter(([input, cell]) => !isIdle(cell.name) && cell.name !== 'unasked' && !tried.has(`${state} ${input}`))
      .map(([input]) => `${state} ${input}`),
  );
}

function noteArrow(arrows: Map<string, Map<string, Set<string>>>, from: string, to: string, input: string): void {
  const targets = arrows.get(from) ?? new Map<string, Set<string>>();
  arrows.set(from, targets.set(to, (targets.get(to) ?? new Set()).add(input)));
}

/** Equal for equal states. Functions in a state are told apart by their text. */
function keyOf(state: Tagged): string {
  return JSON.stringify(state, (_, value: unknown) => {
    if (value instanceof Set || value instanceof Map) return [...value];
    return typeof value === 'function' ? String(value) : value;
  });
}
