/** Tables of the benchmark's reports, in Markdown. */

/** The lines of a table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

/** Without fraction, with commas between thousands. */
export function whole(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 0 });
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
