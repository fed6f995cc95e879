/** Prints a table of moves as Markdown, with a Mermaid diagram of its states, and puts both into the README of its room. */

import type { Walked } from './walk.js';

export interface PrintedTable {
  /** Names the section of the README: `shard`. */
  readonly name: string;
  /** Path of the README from the root of the repository. */
  readonly readme: string;
  /** What the columns are headed by on the left: `message`. */
  readonly inputWord: string;
  /** States × inputs; '' where an input changes nothing. */
  readonly cells: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** Null: the table alone is printed. */
  readonly diagram: Pick<Walked, 'starts' | 'arrows'> | null;
}

/** Inputs that the label of an arrow names; of more than so many it says how many there are. */
const LABELS_MAX = 6;

/** The README with the section of this table as it is now. Errors: an `Error` where the README has no section of this name. */
export function withSection(readme: string, table: PrintedTable): string {
  const [begin, end] = [`<!-- table ${table.name}: printed by npm run tables -->`, `<!-- end of table ${table.name} -->`];
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${table.readme} has no section between «${begin}» and «${end}»`);
  return `${readme.slice(0, from + begin.length)}\n${printSection(table)}\n${readme.slice(to)}`;
}

export function printSection(table: PrintedTable): string {
  return table.diagram === null ? printCells(table) : `${printCells(table)}\n\n${printDiagram(table.diagram)}`;
}

/** A row for each input; states that do the same about every input share a column. An input that changes nothing anywhere has an empty row. */
function printCells({ cells, inputWord }: PrintedTable): string {
  const columns = new Map<string, { states: string[]; moves: ReadonlyMap<string, string> }>();
  for (const [state, moves] of cells) {
    const key = JSON.stringify([...moves]);
    const same = columns.get(key);
    if (same === undefined) columns.set(key, { states: [state], moves });
    else same.states.push(state);
  }
  const shown = [...columns.values()];
  const inputs = [...(shown[0]?.moves.keys() ?? [])];
  const lines = [
    [inputWord, ...shown.map(({ states }) => states.join(', '))],
    ['---', ...shown.map(() => '---')],
    ...inputs.map((input) => [input, ...shown.map(({ moves }) => moves.get(input) ?? '')]),
  ];
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}

function printDiagram({ arrows, starts }: NonNullable<PrintedTable['diagram']>): string {
  const begins = starts.map((state) => `  [*] --> ${state}`);
  const lines = [...arrows].flatMap(([from, targets]) => [...targets].map(([to, inputs]) => `  ${from} --> ${to}: ${label([...inputs])}`));
  return ['```mermaid', 'stateDiagram-v2', ...begins, ...lines, '```'].join('\n');
}

function label(inputs: readonly string[]): string {
  return inputs.length > LABELS_MAX ? `${inputs.length} inputs` : inputs.join(', ');
}
