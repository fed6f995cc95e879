/** Finds the row of a table that a plain path belongs to, as Fastify's router does: a name that stands in a path goes before a parameter. */

import type { Endpoint, HttpMethod } from '../../context/endpoint.js';

export interface FoundRoute {
  /** The row's place in the table. */
  readonly at: number;
  readonly path: Readonly<Record<string, string>>;
}

/** The row of this method and path, null if there is none. path: plain, as `readHead` gives it. */
export type FindRoute = (method: HttpMethod, path: string) => FoundRoute | null;

interface Branch {
  readonly named: Map<string, Branch>;
  parameter: Branch | null;
  /** The row that ends here, with the names of its parameters in order. */
  row: { readonly at: number; readonly names: readonly string[] } | null;
}

export function routeFinder(rows: readonly Pick<Endpoint, 'method' | 'path'>[]): FindRoute {
  const trees = plant(rows);
  return (method, path) => {
    const tree = trees.get(method);
    const values: string[] = [];
    const row = tree === undefined ? null : follow(tree, pathParts(path), 0, values);
    if (row === null) return null;
    const { at, names } = row;
    const found: Record<string, string> = {};
    for (let index = 0; index < names.length; index++) found[names[index] as string] = values[index] as string;
    return { at, path: found };
  };
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

function plant(rows: readonly Pick<Endpoint, 'method' | 'path'>[]): Map<HttpMethod, Branch> {
  const trees = new Map<HttpMethod, Branch>();
  rows.forEach(({ method, path }, at) => {
    let branch = trees.get(method) ?? newBranch();
    trees.set(method, branch);
    const names: string[] = [];
    for (const part of pathParts(path)) {
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
    branch.row = { at, names };
  });
  return trees;
}

function newBranch(): Branch {
  return { named: new Map(), parameter: null, row: null };
}

export function pathParts(path: string): string[] {
  return path === '/' ? [] : path.slice(1).split('/');
}
