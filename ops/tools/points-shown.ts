/** Points as rows for people. */

import { stringifyJson } from '../../protocols/json.js';
import { cut, tableText } from '../client/tables.js';

export interface PrintedPoint {
  readonly id: unknown;
  readonly payload?: unknown;
  readonly vector?: unknown;
  readonly score?: number;
}

const WIDTH = 110;
const VECTOR_WIDTH = 40;

/** Columns for scores and vectors only where there are some. columns: of the terminal. */
export function pointsTable(points: readonly PrintedPoint[], columns = WIDTH): string {
  const hasScores = points.some(({ score }) => score !== undefined);
  const hasVectors = points.some(({ vector }) => vector !== undefined && vector !== null);
  const widest = Math.max(2, ...points.map(({ id }) => String(id).length));
  const left = Math.max(20, columns - widest - 2 - (hasScores ? 12 : 0) - (hasVectors ? VECTOR_WIDTH + 2 : 0));
  const heading = ['id', ...(hasScores ? ['score'] : []), ...(hasVectors ? ['vector'] : []), 'payload'];
  return tableText(
    heading,
    points.map(({ id, payload, score, vector }) => [
      String(id),
      ...(hasScores ? [score ?? 0] : []),
      ...(hasVectors ? [cut(stringifyJson(vector ?? null), VECTOR_WIDTH)] : []),
      cut(stringifyJson(payload ?? {}), left),
    ]),
  );
}
