/** Tables of the benchmark's reports, in Markdown. */

/** The lines of a table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

/** What is shown of each side, with how many digits after the point, and where it is. */
export type SideFigure<Side> = readonly [what: string, digits: number, figureOf: (side: Side) => number | null];

/** A table of figures of this checkout, and of one beside it with the ratio of both. besideName: what that one is. */
export function sidesTable<Side>(figures: readonly SideFigure<Side>[], sides: readonly Side[], besideName: string | null): string[] {
  const head = ['what', 'this one', ...(sides.length > 1 ? [String(besideName), 'ratio'] : [])];
  return table(
    head,
    figures.map(([what, digits, figureOf]) => {
      const values = sides.map(figureOf);
      const [here, beside] = values;
      const cells = [what, ...values.map((value) => shownWith(value, digits))];
      if (sides.length > 1) cells.push(here && beside ? `× ${(here / beside).toFixed(2)}` : '');
      return cells;
    }),
  );
}

function shownWith(value: number | null, digits: number): string {
  return value === null ? '' : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Without fraction, with commas between thousands. */
export function whole(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 0 });
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
