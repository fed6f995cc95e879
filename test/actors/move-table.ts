/** Prints a table of moves as text, one line per state, so that a test shows it whole. */

/** `State: message move, message move…` with the ignored ones left out. */
export function printMoves(moves: Readonly<Record<string, Readonly<Record<string, string>>>>): string {
  const lines = Object.entries(moves).map(([state, row]) => {
    const cells = Object.entries(row).filter(([, move]) => move !== 'ignore');
    return `${state}: ${cells.map(([message, move]) => `${message} ${move}`).join(', ')}`;
  });
  return lines.join('\n');
}

/** Rows whose messages differ from those of the first row: none in a total table. */
export function incompleteRows(moves: Readonly<Record<string, Readonly<Record<string, string>>>>): string[] {
  const rows = Object.entries(moves);
  const expected = Object.keys(rows[0]?.[1] ?? {}).join();
  return rows.filter(([, row]) => Object.keys(row).join() !== expected).map(([state]) => state);
}
