/** Settings from their sources: which value wins, what is unknown, what does not fit. A pure function of the sources. */

import type { Leaf } from './leaf.js';
import { isLeaf, type NodeSettings, SETTING_ALIASES, SETTINGS, type SettingsGroup } from './settings.js';

/** One source of settings; later ones win. */
export type SettingsSource =
  /** A decoded YAML document. */
  | { readonly kind: 'tree'; readonly name: string; readonly tree: unknown }
  /** Environment variables; only those that start with `SERVICE__` count. */
  | { readonly kind: 'environment'; readonly variables: Readonly<Record<string, string | undefined>> };

export interface Resolved {
  readonly settings: NodeSettings;
  /** One line per key that no setting has. */
  readonly warnings: readonly string[];
}

/** Settings that cannot be used; `problems` has one line for each, which starts with the key. */
export class SettingsError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
  }
}

const PREFIX = 'SERVICE__';
const GROUP_EXPECTS = 'a group of settings';

/** The settings that `sources` give, over the built-in defaults. Errors: SettingsError. */
export function resolveSettings(sources: readonly SettingsSource[]): Resolved {
  const collector = new Collector();
  for (const source of sources) {
    if (source.kind === 'tree') collector.takeTree(source.tree, SETTINGS, [], source.name);
    else collector.takeEnvironment(source.variables);
  }
  if (collector.problems.length > 0) throw new SettingsError(collector.problems);
  return { settings: build(SETTINGS, [], collector.values) as NodeSettings, warnings: collector.warnings };
}

/** Values by key path as sources are taken one after another. */
class Collector {
  readonly values = new Map<string, unknown>();
  readonly warnings: string[] = [];
  readonly problems: string[] = [];

  takeTree(tree: unknown, group: SettingsGroup, path: readonly string[], source: string): void {
    if (tree === null || tree === undefined) return;
    if (typeof tree !== 'object' || Array.isArray(tree)) {
      this.problems.push(problem(path.length === 0 ? '(document)' : path.join('.'), GROUP_EXPECTS, tree, source));
      return;
    }
    for (const [key, value] of Object.entries(tree)) {
      const inner = [...path, key];
      const node = find(inner);
      if (node === undefined) this.warnings.push(unknown(inner.join('.'), source));
      else if (isLeaf(node)) this.set(inner, node, value, source);
      else this.takeTree(value, node, inner, source);
    }
  }

  takeEnvironment(variables: Readonly<Record<string, string | undefined>>): void {
    for (const name of Object.keys(variables).sort()) {
      const value = variables[name];
      if (value === undefined || !name.startsWith(PREFIX)) continue;
      this.takeVariable(name, name.slice(PREFIX.length).toLowerCase().split('__'), value);
    }
  }

  private takeVariable(name: string, path: readonly string[], value: string): void {
    const source = `environment variable ${name}`;
    const node = find(path);
    if (node !== undefined && isLeaf(node)) {
      this.set(path, node, node.fromText(value), source);
      return;
    }
    const openAt = path.findIndex((_, at) => isOpen(find(path.slice(0, at + 1))));
    if (node === undefined && openAt >= 0) this.setNested(path, openAt + 1, value);
    else if (node === undefined) this.warnings.push(unknown(path.join('.'), source));
    else this.problems.push(problem(path.join('.'), GROUP_EXPECTS, value, source));
  }

  /** A variable that names a key within an open object. */
  private setNested(path: readonly string[], length: number, value: string): void {
    const key = path.slice(0, length).join('.');
    const leaf = find(path.slice(0, length)) as Leaf<unknown>;
    const root = structuredClone((this.values.get(key) ?? {}) as Record<string, unknown>);
    let target = root;
    for (const segment of path.slice(length, -1)) {
      const next = target[segment];
      const nested = typeof next === 'object' && next !== null ? (next as Record<string, unknown>) : {};
      target[segment] = nested;
      target = nested;
    }
    target[path[path.length - 1] as string] = leaf.fromText(value);
    this.values.set(key, root);
  }

  private set(path: readonly string[], leaf: Leaf<unknown>, value: unknown, source: string): void {
    const key = canonical(path);
    const read = leaf.read(value);
    if (read === undefined) this.problems.push(problem(key, leaf.expects, value, source));
    else this.values.set(key, read);
  }
}

/** The group or leaf at a key path or at an alias of one; undefined when there is none. */
function find(path: readonly string[]): SettingsGroup | Leaf<unknown> | undefined {
  let node: SettingsGroup | Leaf<unknown> = SETTINGS;
  for (const segment of canonical(path).split('.')) {
    if (isLeaf(node) || !Object.hasOwn(node, segment)) return undefined;
    node = node[segment] as SettingsGroup | Leaf<unknown>;
  }
  return node;
}

function canonical(path: readonly string[]): string {
  const key = path.join('.');
  return SETTING_ALIASES.get(key) ?? key;
}

function isOpen(node: SettingsGroup | Leaf<unknown> | undefined): boolean {
  return node !== undefined && isLeaf(node) && node.open === true;
}

function build(group: SettingsGroup, path: readonly string[], values: ReadonlyMap<string, unknown>): unknown {
  const entries = Object.entries(group).map(([key, node]): [string, unknown] => {
    const inner = [...path, key];
    if (!isLeaf(node)) return [key, build(node, inner, values)];
    const value = values.get(inner.join('.'));
    return [key, value === undefined ? node.fallback : value];
  });
  return Object.fromEntries(entries);
}

function unknown(key: string, source: string): string {
  return `unknown setting \`${key}\` (${source})`;
}

function problem(key: string, expects: string, value: unknown, source: string): string {
  return `${key}: expected ${expects}, got ${JSON.stringify(value) ?? String(value)} (${source})`;
}
