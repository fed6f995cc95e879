/**
 * Clients that change collections and aliases of a cluster through any node, one change of a name at a time, and remember
 * what each name must be. A change of which nobody said what became of it leaves its name open, and ends its use.
 */

import type { LocalNode } from '../../../ops/cluster/local-node.js';
import type { RestAnswer } from '../../../ops/rest-client.js';
import { AskingClients, pause } from './asking.js';

/** What a name stands for: a collection's `indexing_threshold`, an alias' collection, a shard key that is there, or nothing. */
export type Value = number | string | null;

const KINDS = ['collection', 'alias', 'alias', 'shard-key'] as const;

export interface Name {
  readonly kind: (typeof KINDS)[number];
  readonly name: string;
  /** One value when all is known, two after a change that may still be carried out. */
  possible: readonly Value[];
}

export interface Totals {
  acknowledged: number;
  refused: number;
  open: number;
  /** Reads with `consistency`, that were answered. */
  reads: number;
  slowestMs: number;
}

type Outcome = 'acknowledged' | 'refused' | 'open';

/** Seconds that the cluster may take, as asked for. */
const TIMEOUT_S = 5;
const NAMES_PER_CLIENT = 4;
export const BASES = ['base-0', 'base-1'] as const;
/** A collection whose shards have keys. */
export const KEYED = 'keyed';
export const PRESENT = 'there';

export class Clients extends AskingClients {
  readonly totals: Totals = { acknowledged: 0, refused: 0, open: 0, reads: 0, slowestMs: 0 };
  readonly names: Name[] = [];
  private stamp = 1;

  /** Collections that aliases point at, and the one of the shard keys. */
  async prepare(): Promise<void> {
    for (const name of [...BASES, KEYED]) {
      const sharding = name === KEYED ? { sharding_method: 'custom' } : {};
      const body = { ...collectionBody(1), ...sharding };
      const answer = await (this.cluster.nodes[0] as LocalNode).client.call('PUT', `/collections/${name}`, body);
      if (answer.status !== 200) throw new Error(`cannot create ${name}: ${answer.status} ${answer.text}`);
      this.names.push({ kind: 'collection', name, possible: [1] });
    }
  }

  protected override async client(number: number): Promise<void> {
    const own: Name[] = [];
    for (let next = 0; !this.stopped; ) {
      if (own.length < NAMES_PER_CLIENT) {
        const kind = KINDS[next % KINDS.length] as Name['kind'];
        const name: Name = { kind, name: `${kind}-${number}-${next++}`, possible: [null] };
        own.push(name);
        this.names.push(name);
      }
      const at = this.random.integer(own.length);
      const name = own[at] as Name;
      await this.change(name);
      if (name.possible.length > 1) own.splice(at, 1);
      else if (name.kind !== 'shard-key' && this.random.unit() < 0.3) await this.read(name);
    }
  }

  private async change(name: Name): Promise<void> {
    const [before] = name.possible as [Value];
    const { method, path, body, after } = this.nextChange(name, before);
    const node = this.anyNode();
    if (node === null) return pause(50);
    const { outcome, answer, milliseconds } = await this.ask(node, method, path, body);
    const told = answer === null ? 'no answer' : `${answer.status} ${answer.text.slice(0, 160)}`;
    this.story(
      `${method} ${path} ${JSON.stringify(body ?? null)} at node ${node.number}: ${before} -> ${after}: ${told} (${Math.round(milliseconds)} ms)`,
    );
    this.totals[outcome]++;
    if (outcome === 'acknowledged') {
      name.possible = [after];
      this.totals.slowestMs = Math.max(this.totals.slowestMs, milliseconds);
    } else if (outcome === 'open') name.possible = [before, after];
    if (answer !== null && ![200, 503, 408].includes(answer.status)) {
      this.wrong(`${method} ${path} at node ${node.number}, where ${name.name} was ${before}, was answered ${told}`);
    }
    if (outcome === 'refused') await pause(100);
  }

  private nextChange(name: Name, before: Value): Change {
    if (name.kind === 'collection') return this.collectionChange(name, before);
    return name.kind === 'alias' ? this.aliasChange(name, before) : shardKeyChange(name, before);
  }

  private collectionChange({ name }: Name, before: Value): Change {
    const after = this.stamp++ * 10 + 1000;
    const path = `/collections/${name}?timeout=${TIMEOUT_S}`;
    if (before === null) {
      // Every other one has as many shards as there are nodes.
      const shards = this.random.unit() < 0.5 ? { shard_number: undefined } : {};
      return { method: 'PUT', path, body: { ...collectionBody(after), ...shards }, after };
    }
    if (this.random.unit() < 0.3) return { method: 'DELETE', path, body: undefined, after: null };
    return { method: 'PATCH', path, body: { optimizers_config: { indexing_threshold: after } }, after };
  }

  private aliasChange({ name }: Name, before: Value): Change {
    const path = `/collections/aliases?timeout=${TIMEOUT_S}`;
    const remove = { delete_alias: { alias_name: name } };
    if (before !== null && this.random.unit() < 0.3) return { method: 'POST', path, body: { actions: [remove] }, after: null };
    const target = before === BASES[0] ? BASES[1] : BASES[0];
    const create = { create_alias: { alias_name: name, collection_name: target } };
    return { method: 'POST', path, body: { actions: before === null ? [create] : [remove, create] }, after: target };
  }

  /** A read with consistency sees the last change that was acknowledged, at whichever node. */
  private async read(name: Name): Promise<void> {
    const node = this.anyNode();
    if (node === null) return;
    const path = name.kind === 'collection' ? `/collections/${name.name}?consistency=majority` : '/aliases?consistency=majority';
    const { answer } = await this.ask(node, 'GET', path, undefined);
    if (answer === null || answer.status === 503 || answer.status === 408) return;
    this.totals.reads++;
    const seen = name.kind === 'collection' ? collectionValue(answer) : aliasValue(answer, name.name);
    if (seen !== name.possible[0]) {
      this.wrong(`${path} at node ${node.number} shows ${name.name} as ${seen} where ${name.possible[0]} was acknowledged`);
    }
  }

  private async ask(node: LocalNode, method: string, path: string, body: unknown) {
    const started = performance.now();
    let answer: RestAnswer | null = null;
    let outcome: Outcome = 'open';
    try {
      answer = await this.inTime(node, `${method} ${path}`, () => node.client.call(method, path, body));
      if (answer !== null) outcome = outcomeOf(answer);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') outcome = 'refused';
    }
    return { outcome, answer, milliseconds: performance.now() - started };
  }
}

interface Change {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly after: Value;
}

function shardKeyChange({ name }: Name, before: Value): Change {
  const body = { shard_key: name };
  const path = `/collections/${KEYED}/shards`;
  if (before === null) return { method: 'PUT', path: `${path}?timeout=${TIMEOUT_S}`, body, after: PRESENT };
  return { method: 'POST', path: `${path}/delete?timeout=${TIMEOUT_S}`, body, after: null };
}

function outcomeOf({ headers, status }: RestAnswer): Outcome {
  if (status === 200) return 'acknowledged';
  return headers['troupe-outcome'] === 'none' ? 'refused' : 'open';
}

function collectionBody(stamp: number) {
  return { vectors: { size: 4, distance: 'Dot' }, shard_number: 1, optimizers_config: { indexing_threshold: stamp } };
}

function collectionValue({ status, body, text }: RestAnswer): Value {
  if (status === 404) return null;
  const result = (body as { result?: { config: { optimizer_config: { indexing_threshold: number } } } }).result;
  return result?.config.optimizer_config.indexing_threshold ?? `${status} ${text.slice(0, 200)}`;
}

function aliasValue({ body, status, text }: RestAnswer, name: string): Value {
  const aliases = (body as { result?: { aliases: { alias_name: string; collection_name: string }[] } }).result?.aliases;
  if (aliases === undefined) return `${status} ${text.slice(0, 200)}`;
  return aliases.find(({ alias_name }) => alias_name === name)?.collection_name ?? null;
}
