/** Faults of a minority of a cluster's processes and of its network, one after the other, each made good again. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import type { RandomNumbers } from '../../../ops/random.js';

export const FAULTS = ['kill', 'pause', 'stop', 'part', 'cut'] as const;

export type Fault = (typeof FAULTS)[number];

export interface FaultReport {
  readonly faults: Map<Fault, number>;
  /** Milliseconds until a majority had a leader again, for each loss of one. */
  readonly leaderMs: number[];
}

const FAULT_MS_MAX = 5000;
const CALM_MS_MAX = 2000;
const READY_MS = 60_000;

export class Faults {
  readonly report: FaultReport = { faults: new Map(), leaderMs: [] };

  constructor(
    private readonly cluster: LocalCluster,
    private readonly random: RandomNumbers,
    private readonly kinds: readonly Fault[],
    private readonly story: (line: string) => void,
    /** Told of nodes that are paused and resumed. */
    private readonly onPause: (node: LocalNode) => void,
    /** Resolves when the next fault may come. */
    private readonly recovered: () => Promise<void> = async () => {},
  ) {}

  /** Until the deadline (of `performance.now()`); everything is made good when it resolves. */
  async run(deadlineMs: number): Promise<void> {
    for (let round = 0; performance.now() < deadlineMs; round++) {
      const kind = this.kinds[round % this.kinds.length] as Fault;
      this.report.faults.set(kind, (this.report.faults.get(kind) ?? 0) + 1);
      const victims = await this.victims();
      this.story(`--- ${kind} of node ${victims.map(({ number }) => number).join(', ')}`);
      const leader = await this.cluster.leader();
      await this.begin(kind, victims);
      if (leader !== null && kind !== 'cut' && victims.includes(leader)) await this.measure(victims);
      await sleep(this.random.integer(FAULT_MS_MAX));
      await this.end(kind, victims);
      this.story(`--- ${kind} is over`);
      await this.recovered();
      await sleep(this.random.integer(CALM_MS_MAX));
    }
  }

  /** A minority; every other time the leader is among them. */
  private async victims(): Promise<LocalNode[]> {
    const nodes = [...this.cluster.nodes];
    const count = 1 + this.random.integer(Math.floor((nodes.length - 1) / 2));
    const chosen: LocalNode[] = [];
    const leader = this.random.unit() < 0.5 ? await this.cluster.leader() : null;
    if (leader !== null) chosen.push(...nodes.splice(nodes.indexOf(leader), 1));
    while (chosen.length < count) chosen.push(...nodes.splice(this.random.integer(nodes.length), 1));
    return chosen;
  }

  private async begin(kind: Fault, victims: readonly LocalNode[]): Promise<void> {
    const others = this.cluster.nodes.filter((node) => !victims.includes(node));
    switch (kind) {
      case 'kill':
        await Promise.all(victims.map((node) => node.kill()));
        return;
      case 'stop':
        await Promise.all(victims.map((node) => node.stop()));
        return;
      case 'pause':
        for (const node of victims) {
          this.onPause(node);
          node.pause();
        }
        return;
      case 'part':
        this.cluster.partition(
          others.map(({ number }) => number),
          victims.map(({ number }) => number),
        );
        return;
      case 'cut':
        for (const node of victims) for (const other of others) this.cluster.cut(node.number, other.number);
        return;
      default:
        kind satisfies never;
    }
  }

  private async end(kind: Fault, victims: readonly LocalNode[]): Promise<void> {
    this.cluster.heal();
    for (const node of victims) {
      if (kind === 'pause') {
        this.onPause(node);
        node.resume();
      }
      if (node.state === 'ended') this.cluster.launch(node.number);
    }
    for (const { number } of victims) await this.cluster.untilReady(number, READY_MS);
  }

  private async measure(victims: readonly LocalNode[]): Promise<void> {
    const started = performance.now();
    for (;;) {
      const leader = await this.cluster.leader();
      const milliseconds = performance.now() - started;
      if (leader !== null && !victims.includes(leader)) {
        this.report.leaderMs.push(Math.round(milliseconds));
        this.story(`--- node ${leader.number} leads after ${Math.round(milliseconds)} ms`);
        return;
      }
      if (milliseconds > 20_000) throw new Error(`no leader within 20 s after the loss of node ${victims.map(({ number }) => number)}`);
      await sleep(20);
    }
  }
}
