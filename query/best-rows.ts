/** The best of many scored rows, kept while they come. */

export interface ScoredRow {
  readonly row: number;
  readonly score: number;
}

/** The best k rows: higher scores first, the smaller row of equal ones. */
export class BestRows {
  private found: ScoredRow[] = [];
  /** Lower scores are not among the best. */
  private bound = Number.NEGATIVE_INFINITY;
  private readonly roomy: number;

  constructor(private readonly k: number) {
    this.roomy = 2 * k + 1024;
  }

  add(row: number, score: number): void {
    if (score < this.bound) return;
    this.found.push({ row, score });
    if (this.found.length >= this.roomy) this.cut();
  }

  inOrder(): ScoredRow[] {
    this.cut();
    return this.found;
  }

  private cut(): void {
    this.found.sort((a, b) => b.score - a.score || a.row - b.row);
    if (this.found.length < this.k) return;
    this.found.length = this.k;
    this.bound = this.found[this.k - 1]?.score ?? this.bound;
  }
}
