/** The tables of moves that READMEs show. `npm run tables` prints them, and a test compares. */

import { REPLICA_TABLE } from '../../actors/replica/step.js';
import { SHARD_TABLE } from '../../actors/shard/step.js';
import type { Tagged } from '../../protocols/machine.js';
import { REPLICA } from './machines/replica.js';
import { SHARD } from './machines/shard.js';
import type { PrintedTable } from './print.js';
import { type Cells, type Machine, untried, walk } from './walk.js';

export interface ListedTable {
  readonly printed: PrintedTable;
  /** Cells that decide something and that the diagram has not seen: none. */
  readonly untried: readonly string[];
}

export const TABLES: readonly ListedTable[] = [
  actor('shard', 'actors/shard/README.md', SHARD_TABLE, SHARD),
  actor('replica', 'actors/replica/README.md', REPLICA_TABLE, REPLICA),
];

function actor<State extends Tagged, Input extends Tagged>(
  name: string,
  readme: string,
  table: Cells,
  machine: Machine<State, Input>,
): ListedTable {
  const walked = walk(machine);
  return { printed: { name, readme, inputWord: 'message', cells: namesOf(table), diagram: walked }, untried: untried(table, walked) };
}

function namesOf(table: Cells): Map<string, Map<string, string>> {
  const nameOf = (move: string) => (move === 'ignore' ? '' : move);
  return new Map(
    Object.entries(table).map(([state, row]) => [
      state,
      new Map(Object.entries(row).map(([input, cell]) => [input, nameOf(cell.name)] as const)),
    ]),
  );
}
