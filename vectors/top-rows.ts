/** The k best of many scored rows, for loops in TypeScript; kernels have a heap of their own. */

import type { Ranked } from './kernel-api.js';

/** Keeps the best rows: higher scores first, the smaller row of equal ones. Scores are single floats. */
export class TopRows {
  private readonly scores: Float32Array;
  private readonly rows: Uint32Array;
  private size = 0;

  /** k >= 1. */
  constructor(private readonly k: number) {
    this.scores = new Float32Array(k);
    this.rows = new Uint32Array(k);
  }

  /** Rows with a lower score are not among the best any more, nor are later rows with this one; minus infinity while there is room. */
  get bound(): number {
    return this.size < this.k ? Number.NEGATIVE_INFINITY : (this.scores[0] as number);
  }

  /** score: as a single float; NaN, which infinite terms leave that cancel each other, is the lowest. */
  add(row: number, given: number): void {
    const score = Number.isNaN(given) ? Number.NEGATIVE_INFINITY : given;
    if (this.size < this.k) {
      this.rise(this.size++, row, score);
    } else if (isWorse(this.scores[0] as number, this.rows[0] as number, score, row)) {
      this.sink(row, score);
    }
  }

  /** Best first. */
  ranked(): Ranked {
    const order: number[] = [];
    for (let at = 0; at < this.size; at++) order.push(at);
    order.sort((a, b) => (this.scores[b] as number) - (this.scores[a] as number) || (this.rows[a] as number) - (this.rows[b] as number));
    const rows = new Uint32Array(this.size);
    const scores = new Float32Array(this.size);
    for (let place = 0; place < this.size; place++) {
      const at = order[place] as number;
      rows[place] = this.rows[at] as number;
      scores[place] = this.scores[at] as number;
    }
    return { count: this.size, rows, scores };
  }

  /** Puts a row into the heap from the place `at` up; the worst stands at the root. */
  private rise(at: number, row: number, score: number): void {
    const { scores, rows } = this;
    let place = at;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isWorse(score, row, scores[parent] as number, rows[parent] as number)) break;
      scores[place] = scores[parent] as number;
      rows[place] = rows[parent] as number;
      place = parent;
    }
    scores[place] = score;
    rows[place] = row;
  }

  /** Puts a row in the place of the root. */
  private sink(row: number, score: number): void {
    const { scores, rows, size } = this;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= size) break;
      const right = child + 1;
      if (right < size && isWorse(scores[right] as number, rows[right] as number, scores[child] as number, rows[child] as number))
        child = right;
      if (!isWorse(scores[child] as number, rows[child] as number, score, row)) break;
      scores[place] = scores[child] as number;
      rows[place] = rows[child] as number;
      place = child;
    }
    scores[place] = score;
    rows[place] = row;
  }
}

function isWorse(score: number, row: number, otherScore: number, otherRow: number): boolean {
  return score < otherScore || (score === otherScore && row > otherRow);
}
