/** How many replicas fit into what this machine gives the process: a decision (Room-R4). What one takes was measured; see ops/README.md. */

import { addressBytesMax, descriptorsMax, mappingsMax } from '../disk/machine.js';

/** Null: not known. Infinite: no limit. */
export interface MachineFigures {
  readonly addressBytes: number | null;
  readonly descriptors: number | null;
  readonly mappings: number | null;
}

export interface ReplicaLimit {
  /** Replicas that the node may have; null for any number. */
  readonly max: number | null;
  /** What would end first. */
  readonly limitedBy: keyof MachineFigures | null;
  /** Its figures, and what to change. */
  readonly reason: string;
}

export const NO_REPLICA_LIMIT: ReplicaLimit = { max: null, limitedBy: null, reason: '' };

/** What a small replica takes: its environment, and its part of a memory. Each further segment of a larger one has a memory of its own. */
const REPLICA_COST = { addressBytes: 1.5 * 2 ** 30, descriptors: 5, mappings: 7 } as const satisfies Record<keyof MachineFigures, number>;

/** Addresses of a node without replicas: heaps, stacks and memories of its threads. */
const NODE_ADDRESS_BYTES = 64 * 2 ** 30;

/** What replicas may take of it. The rest is for connections, sealed segments and threads. */
const SHARE = 0.75;

const WORDS = {
  addressBytes: (max: number) => `${Math.floor(max / 2 ** 30)} GiB of addresses; raise \`ulimit -v\` where it is set`,
  descriptors: (max: number) => `${max} open files; raise \`ulimit -n\` (\`nofile\`)`,
  mappings: (max: number) => `${max} mappings; raise \`vm.max_map_count\` (\`sysctl\`)`,
} as const satisfies Record<keyof MachineFigures, (max: number) => string>;

const KINDS = ['descriptors', 'addressBytes', 'mappings'] as const;

export function replicaLimit(figures: MachineFigures): ReplicaLimit {
  let limit = NO_REPLICA_LIMIT;
  for (const kind of KINDS) {
    const has = figures[kind];
    if (has === null || has === Number.POSITIVE_INFINITY) continue;
    const left = kind === 'addressBytes' ? Math.max(0, has - NODE_ADDRESS_BYTES) : has;
    const max = Math.floor((left * SHARE) / REPLICA_COST[kind]);
    if (limit.max === null || max < limit.max) limit = { max, limitedBy: kind, reason: `this process can have ${WORDS[kind](has)}` };
  }
  return limit;
}

/** What the machine gives now. */
export function machineFigures(): MachineFigures {
  return { addressBytes: addressBytesMax(), descriptors: descriptorsMax(), mappings: mappingsMax() };
}

/** Why so many more replicas do not fit beside those that are there; null if they do. */
export function beyondLimit({ max, reason }: ReplicaLimit, present: number, added: number): string | null {
  if (max === null || present + added <= max) return null;
  return `${added} more ${added === 1 ? 'replica' : 'replicas'} of shards and the ${present} that this node has are more than the ${max} that it has room for: ${reason}`;
}
