/** Grey images as text: two rows of pixels to a line, in colours where the terminal has them. */

export interface Picture {
  readonly lines: readonly string[];
}

const SIDE = 28;
/** Digits keep to the middle of their image; the empty margin is cut off. */
const MARGIN = 3;
const WIDTH = SIDE - 2 * MARGIN;
const GAP = '   ';
const COLOURS = process.stdout.isTTY === true && process.env.NO_COLOR === undefined && process.env.TERM !== 'dumb';
/** Grey above which a pixel is ink, where there are no colours. */
const INK = 90;

/** A picture of 28 × 28 grey levels (0 paper … 255 ink), row after row, with lines of text below it. */
export function picture(pixels: Uint8Array, captions: readonly string[]): Picture {
  const lines: string[] = [];
  for (let row = MARGIN; row < SIDE - MARGIN; row += 2) {
    let line = '';
    for (let column = MARGIN; column < SIDE - MARGIN; column++) {
      line += cell(pixels[row * SIDE + column] as number, pixels[(row + 1) * SIDE + column] as number);
    }
    lines.push(COLOURS ? `${line}\x1b[0m` : line);
  }
  return { lines: [...lines, ...captions.map(padded)] };
}

/** Pictures next to each other. */
export function sideBySide(pictures: readonly Picture[]): string {
  const height = Math.max(...pictures.map((one) => one.lines.length));
  return Array.from({ length: height }, (_, i) => pictures.map((one) => one.lines[i] ?? padded('')).join(GAP)).join('\n');
}

export function bold(text: string): string {
  return COLOURS ? `\x1b[1m${text}\x1b[0m` : text;
}

export function dim(text: string): string {
  return COLOURS ? `\x1b[2m${text}\x1b[0m` : text;
}

/** One character for a pixel and the one below it. */
function cell(upper: number, lower: number): string {
  if (COLOURS) return `\x1b[38;5;${grey(upper)};48;5;${grey(lower)}m▀`;
  if (upper > INK) return lower > INK ? '█' : '▀';
  return lower > INK ? '▄' : ' ';
}

/** The terminal's grey ramp: 232 nearly black … 255 nearly white; ink shows bright. */
function grey(value: number): number {
  return 232 + Math.round((value / 255) * 23);
}

function padded(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences take no room on the screen
  const visible = text.replace(/\x1b\[[\d;]*m/g, '').length;
  return text + ' '.repeat(Math.max(0, WIDTH - visible));
}
