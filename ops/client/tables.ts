/** What tools print for people. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Rows under a heading, columns as wide as their widest cell; columns of numbers to the right. */
export function tableText(heading: readonly string[], rows: readonly (readonly (string | number | bigint)[])[]): string {
  const texts = [heading, ...rows.map((row) => row.map(shownCell))];
  const widths = heading.map((_, column) => Math.max(...texts.map((row) => widthOf(row[column] ?? ''))));
  const isNumeric = heading.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] !== 'string'));
  return texts
    .map((row) => {
      const cells = widths.map((width, column) => {
        const text = row[column] ?? '';
        const space = ' '.repeat(Math.max(0, width - widthOf(text)));
        return isNumeric[column] ? space + text : text + space;
      });
      return `${cells.join('  ').trimEnd()}\n`;
    })
    .join('');
}

/** `key: value` lines, one under the other; nested objects are indented. */
export function listingText(value: unknown, indent = ''): string {
  return Object.entries(value as Record<string, unknown>)
    .filter(([, inner]) => inner !== null && inner !== undefined)
    .map(([key, inner]) => {
      const isBranch = typeof inner === 'object' && !Array.isArray(inner);
      if (!isBranch) return `${indent}${key}: ${oneLineOf(inner)}\n`;
      const below = listingText(inner, `${indent}  `);
      return below === '' ? `${indent}${key}: none\n` : `${indent}${key}:\n${below}`;
    })
    .join('');
}

export function bytesText(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** unit;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** 1234567 as 1,234,567. */
export function countText(count: number | bigint): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Cut to so many characters, with … at the end of what is longer. */
export function cut(text: string, length: number): string {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, Math.max(0, length - 1)).join('')}…`;
}

function shownCell(cell: string | number | bigint): string {
  return typeof cell === 'string'
    ? oneLine(cell)
    : typeof cell === 'number' && !Number.isInteger(cell)
      ? cell.toPrecision(6)
      : String(cell);
}

function oneLineOf(value: unknown): string {
  return typeof value === 'string'
    ? oneLine(value)
    : (JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? String(inner) : inner)) ?? '');
}

/** What comes from a node must not steer the terminal. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => (character === '\n' ? '\\n' : character === '\t' ? ' ' : '?'));
}

function widthOf(text: string): number {
  return [...text].length;
}
