/** A measured value with its name and unit, and how tables show it. */

export interface MeasuredRow {
  readonly what: string;
  readonly unit: string;
  readonly value: number;
}

export function rowCells({ unit, value, what }: MeasuredRow): string[] {
  return [what, `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit === '' ? '' : ` ${unit}`}`];
}
