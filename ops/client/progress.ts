/** Progress of a long work: a bar on a terminal, nothing elsewhere. */

import { bytesText, countText } from './tables.js';

const DRAW_EVERY_MS = 100;
const BAR_WIDTH = 24;

export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export class ProgressBar {
  readonly #startedMs: number;
  readonly #startedAt: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #isDrawn = false;

  /** total: null where nobody knows it. from: what was done before. unit: `bytes`, or what is counted (`points`). */
  constructor(
    private readonly what: string,
    private readonly unit: string,
    private readonly total: number | null,
    from = 0,
    private readonly terminal: Terminal = process.stderr,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.#startedMs = nowMs();
    this.#startedAt = from;
  }

  /** done: of the whole, not of this call alone. */
  show(done: number): void {
    const nowMs = this.nowMs();
    if (this.terminal.isTTY !== true || nowMs - this.#drawnMs < DRAW_EVERY_MS) return;
    this.#drawnMs = nowMs;
    this.#draw(done, nowMs);
  }

  /** Leaves the last state on the terminal. */
  end(done: number): void {
    if (this.terminal.isTTY !== true) return;
    this.#draw(done, this.nowMs());
    this.terminal.write('\n');
  }

  /** Takes the bar away, so that something else can be printed. */
  clear(): void {
    if (this.#isDrawn) this.terminal.write('\r\u001b[K');
    this.#isDrawn = false;
  }

  #draw(done: number, nowMs: number): void {
    const seconds = (nowMs - this.#startedMs) / 1000;
    const line = progressLine({ what: this.what, unit: this.unit, total: this.total, done, begun: this.#startedAt, seconds });
    this.terminal.write(`\r\u001b[K${line.slice(0, Math.max(20, (this.terminal.columns ?? 100) - 1))}`);
    this.#isDrawn = true;
  }
}

export interface ProgressFigures {
  readonly what: string;
  readonly unit: string;
  readonly total: number | null;
  readonly done: number;
  /** What was done before `seconds` began. */
  readonly begun: number;
  readonly seconds: number;
}

/** One line: bar, share, rate and the time that is left. */
export function progressLine({ begun, done, seconds, total, unit, what }: ProgressFigures): string {
  const shown = (count: number): string => (unit === 'bytes' ? bytesText(count) : countText(Math.round(count)));
  const rate = seconds > 0 ? (done - begun) / seconds : 0;
  const rateText = `${shown(rate)}${unit === 'bytes' ? '' : ` ${unit}`}/s`;
  if (total === null || total <= 0) return `${what}: ${shown(done)}${unit === 'bytes' ? '' : ` ${unit}`}, ${rateText}`;
  const share = Math.min(1, done / total);
  const filled = Math.round(share * BAR_WIDTH);
  const left = rate > 0 && done < total ? `, ${spanText((total - done) / rate)} left` : '';
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  return `${what} ${bar} ${Math.floor(share * 100)} % (${shown(done)} of ${shown(total)}${unit === 'bytes' ? '' : ` ${unit}`}), ${rateText}${left}`;
}

function spanText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.ceil((seconds % 3600) / 60)} min`;
}
