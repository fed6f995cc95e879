/**
 * Tables of state machines. A table has a cell for each state and each input, and a cell is the function that decides what happens
 * then: the compiler asks for the cell that is missing, and gives each function just the state and the input that it is for. The
 * name of a function is the name of the move, so a table can be printed (`printTable`).
 */

/** States, messages and effects are tagged unions. */
export interface Tagged {
  readonly kind: string;
}

/** The members of a union that have this tag. */
export type Of<Union extends Tagged, Kind extends Union['kind']> = Extract<Union, { readonly kind: Kind }>;

/** States × inputs. */
export type Table<State extends Tagged, Input extends Tagged, Result> = {
  readonly [S in State['kind']]: Row<Input, Of<State, S>, Result>;
};

/** One function for each input (or effect), with what it works on. */
export type Row<Input extends Tagged, Subject, Result> = {
  readonly [I in Input['kind']]: (subject: Subject, input: Of<Input, I>) => Result;
};

/** What the table has for this state and input. */
export function decide<State extends Tagged, Input extends Tagged, Result>(
  table: Table<State, Input, Result>,
  state: State,
  input: Input,
): Result {
  return decideInRow(table[state.kind as State['kind']] as Row<Input, State, Result>, state, input);
}

/** What the row has for this input. */
export function decideInRow<Input extends Tagged, Subject, Result>(
  row: Row<Input, Subject, Result>,
  subject: Subject,
  input: Input,
): Result {
  // The compiler does not see that a row's function and its key belong together; here, and nowhere else, it is told so.
  const cell = row[input.kind as Input['kind']] as (subject: Subject, input: Input) => Result;
  return cell(subject, input);
}

/** The move of «nothing to do»: the very same state, no effects. */
export function ignore<State>(state: State): { readonly state: State; readonly effects: readonly never[] } {
  return { state, effects: [] };
}
