/** Finds the row of the table that a plain path belongs to, as Fastify's router finds it: a name that stands in a path goes before a parameter. */

import type { HttpMethod } from '../../context/endpoint.js';
import { ROUTES, type Route } from '../../routes.js';

export interface FoundRoute {
  readonly route: Route;
  /** The route's place in `ROUTES`. */
  readonly at: number;
  readonly path: Readonly<Record<string, string>>;
}

interface Branch {
  readonly named: Map<string, Branch>;
  parameter: Branch | null;
  /** The row that ends here, with the names of its parameters in order. */
  row: { readonly route: Route; readonly at: number; readonly names: readonly string[] } | null;
}

const TREES: ReadonlyMap<HttpMethod, Branch> = plant();

/** The row of this method and path, null if there is none. path: plain, as `readHead` gives it. */
export function findRoute(method: HttpMethod, path: string): FoundRoute | null {
  const tree = TREES.get(method);
  if (tree === undefined) return null;
  const values: string[] = [];
  const row = follow(tree, partsOf(path), 0, values);
  if (row === null) return null;
  const { names, route, at } = row;
  const found: Record<string, string> = {};
  for (let index = 0; index < names.length; index++) found[names[index] as string] = values[index] as string;
  return { route, at, path: found };
}

/** values: gets those of the parameters on the way. */
function follow(branch: Branch, parts: readonly string[], at: number, values: string[]): Branch['row'] {
  if (at === parts.length) return branch.row;
  const part = parts[at] as string;
  const next = branch.named.get(part);
  const found = next === undefined ? null : follow(next, parts, at + 1, values);
  if (found !== null || branch.parameter === null) return found;
  values.push(part);
  const other = follow(branch.parameter, parts, at + 1, values);
  if (other === null) values.pop();
  return other;
}

function plant(): Map<HttpMethod, Branch> {
  const trees = new Map<HttpMethod, Branch>();
  ROUTES.forEach((route, at) => {
    let branch = trees.get(route.method) ?? newBranch();
    trees.set(route.method, branch);
    const names: string[] = [];
    for (const part of partsOf(route.path)) {
      const name = /^\{(\w+)\}$/.exec(part)?.[1];
      if (name === undefined) {
        const next: Branch = branch.named.get(part) ?? newBranch();
        branch.named.set(part, next);
        branch = next;
      } else {
        names.push(name);
        branch.parameter ??= newBranch();
        branch = branch.parameter;
      }
    }
    branch.row = { route, at, names };
  });
  return trees;
}

function newBranch(): Branch {
  return { named: new Map(), parameter: null, row: null };
}

function partsOf(path: string): string[] {
  return path === '/' ? [] : path.slice(1).split('/');
}
