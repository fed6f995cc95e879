/** The tables of moves that READMEs show, all in one place. `npm run tables` prints them, and a test compares. */

import { BACKUPS_TABLE } from '../../actors/backups/step.js';
import { COLLECTION_TABLE } from '../../actors/collection/step.js';
import { MEMBER_ROW } from '../../actors/consensus/member.js';
import { CONSENSUS_TABLE } from '../../actors/consensus/step.js';
import { MIGRATION_TABLE } from '../../actors/migration/step.js';
import { NODE_TABLE } from '../../actors/node/step.js';
import { OPTIMIZER_TABLE } from '../../actors/optimizer/step.js';
import { REPLICA_TABLE } from '../../actors/replica/step.js';
import { SHARD_TABLE } from '../../actors/shard/step.js';
import { SNAPSHOTS_TABLE } from '../../actors/snapshots/step.js';
import { TRANSFER_TABLE } from '../../actors/transfers/run/step.js';
import { TRANSFERS_TABLE } from '../../actors/transfers/step.js';
import { REPLICATION_TABLE } from '../../cluster/replication/step.js';
import { afterStart, REPLICA_STATE_MOVES } from '../../cluster/state/replica-state.js';
import type { Tagged } from '../../protocols/machine.js';
import { TRANSFER_METHODS } from '../../protocols/model/cluster.js';
import { BACKUPS } from './machines/backups.js';
import { COLLECTION } from './machines/collection.js';
import { CONSENSUS } from './machines/consensus.js';
import { MIGRATION } from './machines/migration.js';
import { NODE } from './machines/node.js';
import { OPTIMIZER } from './machines/optimizer.js';
import { REPLICA } from './machines/replica.js';
import { REPLICATION } from './machines/replication.js';
import { SHARD } from './machines/shard.js';
import { SNAPSHOTS } from './machines/snapshots.js';
import { TRANSFER, TRANSFERS } from './machines/transfer.js';
import type { PrintedTable } from './print.js';
import { type Cells, isIdle, type Machine, untried, walk } from './walk.js';

export interface ListedTable {
  readonly printed: PrintedTable;
  /** Cells that decide something and that the diagram has not seen: none. */
  readonly untried: readonly string[];
}

export const TABLES: readonly ListedTable[] = [
  actor('collection', 'actors/collection/README.md', COLLECTION_TABLE, COLLECTION),
  actor('shard', 'actors/shard/README.md', SHARD_TABLE, SHARD),
  actor('replica', 'actors/replica/README.md', REPLICA_TABLE, REPLICA),
  actor('optimizer', 'actors/optimizer/README.md', OPTIMIZER_TABLE, OPTIMIZER),
  actor('node', 'actors/node/README.md', NODE_TABLE, NODE),
  actor('consensus', 'actors/consensus/README.md', { ...CONSENSUS_TABLE, Member: MEMBER_ROW }, CONSENSUS),
  actor('transfers', 'actors/transfers/README.md', TRANSFERS_TABLE, TRANSFERS),
  actor('transfer', 'actors/transfers/README.md', TRANSFER_TABLE, TRANSFER),
  actor('migration', 'actors/migration/README.md', MIGRATION_TABLE, MIGRATION),
  actor('snapshots', 'actors/snapshots/README.md', SNAPSHOTS_TABLE, SNAPSHOTS),
  actor('backups', 'actors/backups/README.md', BACKUPS_TABLE, BACKUPS),
  actor('replication', 'cluster/README.md', REPLICATION_TABLE, REPLICATION),
  replicaStates(),
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

/** States of replicas as the cluster agrees on them: a cell is the state that an event leads to. */
function replicaStates(): ListedTable {
  const shown: Readonly<Record<string, string>> = { ignore: 'stays', refuse: '' };
  const arrows = new Map<string, Map<string, Set<string>>>();
  const cells = new Map<string, Map<string, string>>();
  for (const [state, row] of Object.entries(REPLICA_STATE_MOVES)) {
    const targets = new Map<string, Set<string>>();
    for (const [event, move] of Object.entries(row))
      if (shown[move] === undefined) targets.set(move, (targets.get(move) ?? new Set()).add(event));
    arrows.set(state, targets);
    cells.set(state, new Map(Object.entries(row).map(([event, move]) => [event, shown[move] ?? move] as const)));
  }
  const starts = [...new Set(['Initializing', ...TRANSFER_METHODS.flatMap((method) => afterStart(method, null) ?? [])])];
  const printed = { name: 'replica states', readme: 'cluster/README.md', inputWord: 'event', cells, diagram: { starts, arrows } };
  return { printed, untried: [] };
}

function namesOf(table: Cells): Map<string, Map<string, string>> {
  const nameOf = (move: string) => (isIdle(move) ? '' : move);
  return new Map(
    Object.entries(table).map(([state, row]) => [
      state,
      new Map(Object.entries(row).map(([input, cell]) => [input, nameOf(cell.name)] as const)),
    ]),
  );
}
