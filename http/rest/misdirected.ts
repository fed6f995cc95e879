/** What a client is told whose method and path are no row of the table: which methods the path takes, or which path may be meant. */

import { TroupeError } from '../../protocols/errors.js';
import { editDistance } from '../../protocols/rest/known-names.js';
import type { Endpoint, HttpMethod } from '../context/endpoint.js';
import { pathParts, routeFinder } from './fast/find-route.js';

export interface Misdirected {
  /** For the header `allow`; null: the path is no operation's. */
  readonly allow: string | null;
  /** `methodNotAllowed` or `notFound`. */
  readonly error: TroupeError;
}

type Row = Pick<Endpoint, 'method' | 'path'>;
type Template = Row & { readonly parts: readonly string[] };

const METHODS: readonly HttpMethod[] = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'];
/** Nothing is meant by a longer path than the API has, so that looking for the nearest one stays cheap. */
const PARTS_MAX = 8;
const PART_LENGTH_MAX = 32;
const SHOWN_LENGTH_MAX = 200;

// What it costs to turn a part of the path into one of a row. A part that the row leaves open fits any, though not as well as its own name.
const ANY_COST = 0.2;
const MISSING_COST = 0.6;
const OTHER_COST = 1;
const OTHER_METHOD_COST = 0.1;
/** A name that differs in more than this part of its letters is another one. */
const MISSPELT_MAX = 0.4;
/** A row is near if its cost is below this for each part of the path. */
const NEAR_COST = 0.45;

/** rows: of the table. The answer takes a method and a url as the client sent them; null: there is such a row. */
export function misdirection(rows: readonly Row[]): (method: string, url: string) => Misdirected | null {
  const findRoute = routeFinder(rows);
  const templates = rows.map((row) => ({ ...row, parts: pathParts(row.path) }));
  return (method, url) => {
    // The query may hold what is nobody's business, such as a key.
    const [sent = ''] = url.split(/[?#]/);
    const path = plainPath(sent);
    const methods = METHODS.filter((one) => findRoute(one, path) !== null);
    const allowed = methods.includes('GET') ? ['GET', 'HEAD', ...methods.slice(1)] : methods;
    if (allowed.includes(method)) return null;
    const shown = `${method} ${sent.slice(0, SHOWN_LENGTH_MAX)}`;
    const parts = pathParts(path);
    if (allowed.length > 0) {
      // A part that is misspelt may be taken for an open one.
      const meant = nearest(
        parts,
        method,
        templates.filter((row) => row.method === method),
        MISSING_COST,
      );
      const taken = `no operation at ${shown}: this path takes ${allowed.join(', ')}`;
      const error = new TroupeError('methodNotAllowed', meant === null ? taken : `${taken}; did you mean ${meant}?`);
      return { allow: [...allowed, 'OPTIONS'].join(', '), error };
    }
    const meant = nearest(parts, method, templates, NEAR_COST * parts.length);
    const hint = meant === null ? 'GET /openapi.json lists all of them' : `did you mean ${meant}?`;
    return { allow: null, error: new TroupeError('notFound', `no operation at ${shown}; ${hint}`) };
  };
}

/** Without escapes, doubled slashes and one at the end, as the router takes it. */
function plainPath(path: string): string {
  return decoded(path)
    .replace(/\/{2,}/g, '/')
    .replace(/(.)\/$/, '$1');
}

function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** The path of the row that costs least, and less than `costMax`, with its method if that is another one; null: none is near. */
function nearest(parts: readonly string[], method: string, rows: readonly Template[], costMax: number): string | null {
  if (parts.length > PARTS_MAX) return null;
  const costs = new Map<string, number>();
  let least = costMax;
  let found: Row | null = null;
  for (const row of rows) {
    const cost = costOf(parts, row.parts, costs) + (row.method === method ? 0 : OTHER_METHOD_COST);
    if (cost >= least) continue;
    least = cost;
    found = row;
  }
  if (found === null) return null;
  return found.method === method ? found.path : `${found.method} ${found.path}`;
}

/** The least cost of turning one list of parts into the other. known: of pairs of names, filled here. */
function costOf(parts: readonly string[], wanted: readonly string[], known: Map<string, number>): number {
  let row = Array.from({ length: wanted.length + 1 }, (_, at) => at * MISSING_COST);
  parts.forEach((part, i) => {
    const next = [(i + 1) * MISSING_COST];
    wanted.forEach((name, j) => {
      const replaced = (row[j] as number) + replacingCost(part, name, known);
      next.push(Math.min(replaced, (row[j + 1] as number) + MISSING_COST, (next[j] as number) + MISSING_COST));
    });
    row = next;
  });
  return row[wanted.length] as number;
}

function replacingCost(part: string, name: string, known: Map<string, number>): number {
  if (part === name) return 0;
  if (name.startsWith('{')) return ANY_COST;
  if (part.length > PART_LENGTH_MAX) return OTHER_COST;
  const pair = `${part}/${name}`;
  const cost = known.get(pair) ?? misspelling(part, name);
  known.set(pair, cost);
  return cost;
}

function misspelling(part: string, name: string): number {
  const share = editDistance(part.toLowerCase(), name) / Math.max(part.length, name.length);
  return share > MISSPELT_MAX ? OTHER_COST : share;
}
