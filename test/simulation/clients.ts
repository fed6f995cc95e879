/** Clients that ask nodes at random, one thing after the other, and note what they heard. */

import type { NodeApi } from '../../actors/requests/node-api.js';
import { outcomeOf } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { sampleConfig } from '../actors/samples.js';
import { type CallParts, callNode, type Ended, TIMEOUT_MS } from './calls.js';
import { type Call, checkLinearizable } from './linearizable.js';
import { type Answer, type Group, groupModel, NO_COLLECTION, type Operation } from './model.js';
import type { SimulatedNode } from './node.js';
import type { Stream } from './random.js';

const GROUPS = 3;
/** Of the cluster, not of the request. */
const FAILURES = new Set(['unavailable', 'timeout', 'storage', 'busy']);
const ALIASES = ['x', 'y'];
const KEYS = ['north', 'south'];

export interface ClientCounts {
  calls: number;
  done: number;
  refused: number;
  failed: number;
  open: number;
}

interface Noted extends Call<Operation, Answer> {
  readonly group: number;
  answered: number;
  answer: Answer | null;
}

export class Clients {
  readonly counts: ClientCounts = { calls: 0, done: 0, refused: 0, failed: 0, open: 0 };
  /** Histories that took too many steps to check. */
  undecided = 0;
  readonly #calls: Noted[] = [];
  #values = 0;
  #stopped = false;

  constructor(
    private readonly parts: CallParts,
    private readonly nodes: readonly SimulatedNode[],
    private readonly random: Stream,
  ) {}

  start(clients: number): void {
    for (let client = 1; client <= clients; client++) this.#live(client);
  }

  /** Clients finish what they have begun. */
  stop(): void {
    this.#stopped = true;
  }

  /** The node reads and changes each group. True when it answered all of it. */
  async finish(node: SimulatedNode): Promise<boolean> {
    for (let group = 0; group < GROUPS; group++) {
      const read = await this.#call('check', node, group, { kind: 'read' });
      if (read?.kind !== 'seen') return false;
      const look = await this.#call('check', node, group, { kind: 'look' });
      if (look?.kind !== 'seen') return false;
      const kind = read.seen.value === null ? 'create' : 'update';
      const answer = await this.#call('check', node, group, { kind, value: this.#nextValue() });
      // Refused: another node was asked for the same just before.
      if (answer === null || answer.kind === 'failed') return false;
    }
    return true;
  }

  /** Whether what clients saw can have happened one after the other. */
  check(): void {
    for (let group = 0; group < GROUPS; group++) {
      // An open read says nothing.
      const isTelling = ({ answer, operation }: Noted) => answer !== null || (operation.kind !== 'read' && operation.kind !== 'look');
      const calls = this.#calls.filter((call) => call.group === group && isTelling(call));
      const verdict = checkLinearizable(calls, groupModel);
      if (verdict === 'undecided') this.undecided += 1;
      if (verdict === 'impossible')
        this.parts.violation(
          `linearizability: what clients saw of c${group} cannot have happened in any order\n${shortest(calls).join('\n')}`,
        );
    }
  }

  async #live(client: number): Promise<void> {
    while (!this.#stopped) {
      await this.parts.world.sleep(this.random.between(20, 900));
      if (this.#stopped) return;
      const node = this.random.pick(this.nodes);
      if (node.api === null) continue;
      const group = this.random.integer(0, GROUPS - 1);
      await this.#call(`client ${client}`, node, group, this.#operation(group));
    }
  }

  #operation(group: number): Operation {
    const draw = this.random.integer(1, 100);
    if (draw <= 22) return { kind: 'create', value: this.#nextValue() };
    if (draw <= 45) return { kind: 'update', value: this.#nextValue() };
    if (draw <= 53) return { kind: 'delete' };
    if (draw <= 68) return { kind: this.random.chance(0.7) ? 'addAlias' : 'removeAlias', alias: `${this.random.pick(ALIASES)}${group}` };
    if (draw <= 76 && isCustom(group)) return { kind: this.random.chance(0.6) ? 'addKey' : 'dropKey', key: this.random.pick(KEYS) };
    return { kind: this.random.chance(0.6) ? 'read' : 'look' };
  }

  #nextValue(): string {
    this.#values += 1;
    return `v${this.#values}`;
  }

  /** Null when nobody knows what came of it. */
  async #call(who: string, node: SimulatedNode, group: number, operation: Operation): Promise<Answer | null> {
    const { api, life } = node;
    if (api === null || life === null) return null;
    const noted: Noted = { group, operation, called: this.parts.world.events, answered: Infinity, answer: null };
    this.#calls.push(noted);
    this.counts.calls += 1;
    const what = `c${group} ${textOf(operation)}`;
    const ended = await callNode(this.parts, who, node, what, (api) => carryOut(api, group, operation), textOf);
    const answer = ended === null ? null : this.#answerOf(ended, what);
    if (answer === null) this.counts.open += 1;
    else {
      this.counts[answer.kind === 'refused' || answer.kind === 'failed' ? answer.kind : 'done'] += 1;
      noted.answered = this.parts.world.events;
      noted.answer = answer;
    }
    return answer;
  }

  /** Null where nobody knows whether it was, or will be, carried out. */
  #answerOf(ended: Ended<Answer>, what: string): Answer | null {
    if (ended.kind === 'answered') return ended.answer;
    if (ended.kind === 'lost') return null;
    const { error, lives, stack } = ended;
    if (error.code === 'internal') this.parts.violation(`${what} failed: ${error.detail}${stack}`);
    const isOpen = outcomeOf(error) === 'unknown' || !lives;
    return isOpen ? null : { kind: FAILURES.has(error.code) ? 'failed' : 'refused' };
  }
}

/** The calls up to the first answer that makes it impossible, in the order of their answers. */
function shortest(calls: readonly Noted[]): string[] {
  const answers = calls.map((call) => call.answered).sort((one, other) => one - other);
  const upTo = (end: number) =>
    calls
      .filter((call) => call.called <= end)
      .map((call) => (call.answered <= end ? call : { ...call, answered: Infinity, answer: null }))
      .filter((call) => call.answer !== null || (call.operation.kind !== 'read' && call.operation.kind !== 'look'));
  const end = answers.find((answered) => checkLinearizable(upTo(answered), groupModel) === 'impossible') ?? Infinity;
  return upTo(end)
    .sort((one, other) => one.answered - other.answered)
    .map(
      (call) =>
        `  events ${call.called} to ${call.answered}  ${textOf(call.operation)}: ${call.answer === null ? 'open' : textOf(call.answer)}`,
    );
}

/** Two groups in three have automatic sharding, one names its shards. */
function isCustom(group: number): boolean {
  return group === GROUPS - 1;
}

async function carryOut(api: NodeApi, group: number, operation: Operation): Promise<Answer> {
  const name = `c${group}`;
  const { cluster } = api;
  if (cluster === null) throw new Error('the node is in no cluster');
  switch (operation.kind) {
    case 'create':
      return done(await api.createCollection(name, configOf(group, operation.value), TIMEOUT_MS));
    case 'update':
      return done(await api.updateCollection(name, (config) => ({ ...config, metadata: { value: operation.value } }), TIMEOUT_MS));
    case 'delete':
      return (await api.deleteCollection(name, TIMEOUT_MS)) ? { kind: 'done' } : { kind: 'none' };
    case 'addAlias':
      return done(await api.changeAliases([{ kind: 'create', alias: operation.alias, collection: name }], TIMEOUT_MS));
    case 'removeAlias':
      return done(await api.changeAliases([{ kind: 'delete', alias: operation.alias }], TIMEOUT_MS));
    case 'addKey': {
      const setup = { key: operation.key, shardsNumber: null, replicationFactor: null, placement: null, initialState: null };
      return done(await cluster.updateCollectionCluster(name, { kind: 'createShardKey', ...setup }, TIMEOUT_MS));
    }
    case 'dropKey':
      return done(await cluster.updateCollectionCluster(name, { kind: 'dropShardKey', key: operation.key }, TIMEOUT_MS));
    case 'read':
      await cluster.barrier(TIMEOUT_MS);
      return { kind: 'seen', seen: agreedGroup(api, name) };
    case 'look':
      await cluster.barrier(TIMEOUT_MS);
      return { kind: 'seen', seen: { ...NO_COLLECTION, value: api.exists(name) ? labelOf(api.info(name).config) : null } };
    default:
      return operation satisfies never;
  }
}

function done(answer: boolean): Answer {
  if (!answer) throw new Error('answered false');
  return { kind: 'done' };
}

function agreedGroup(api: NodeApi, name: string): Group {
  const state = api.cluster?.state() ?? null;
  const record = state?.collections.get(name);
  const aliases = [...(state?.aliases ?? [])].filter(([, collection]) => collection === name).map(([alias]) => alias);
  const keys = new Set([...(record?.shards.values() ?? [])].map(({ key }) => key).filter((key) => key !== null));
  return { value: record === undefined ? null : labelOf(record.config), aliases: aliases.sort(), keys: [...keys].map(String).sort() };
}

function configOf(group: number, value: string): CollectionConfig {
  const config = sampleConfig();
  const params = isCustom(group) ? { ...config.params, sharding_method: 'custom' as const } : { ...config.params, shard_number: group + 1 };
  return { ...config, params: { ...params, replication_factor: group + 1 }, metadata: { value } };
}

function labelOf(config: { readonly metadata?: unknown }): string {
  return String((config.metadata as { value?: unknown } | undefined)?.value);
}

function textOf(value: Operation | Answer): string {
  const { kind, ...rest } = value;
  const facts = Object.values(rest);
  return facts.length === 0 ? kind : `${kind} ${facts.map((fact) => (typeof fact === 'string' ? fact : JSON.stringify(fact))).join(' ')}`;
}
