/** Routing context of requests: assignments of shards, calls to peers, and retry pauses. */

import {
  type AnswerCall,
  type DataAnswer,
  type DataCall,
  LostAnswer,
  type PeerCalls,
  type ShardAddress,
} from '../../cluster/data-messages.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Clock, Random, Timers } from '../runtime/ports.js';
import type { Assignment, Assignments } from '../shard-log/assignments.js';

export interface RouteParts {
  readonly assignments: Assignments;
  readonly calls: PeerCalls;
  /** Answers calls to this node itself, like those to any peer. */
  readonly answer: AnswerCall;
  /** Resolves once this node knows everything that was agreed before the call. Errors: `unavailable` without a leader, `timeout`. */
  readonly barrier: (timeoutMs: number) => Promise<void>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

export class Routes {
  readonly assignments: Assignments;
  readonly barrier: RouteParts['barrier'];
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;

  constructor(private readonly parts: RouteParts) {
    this.assignments = parts.assignments;
    this.barrier = parts.barrier;
    this.clock = parts.clock;
    this.timers = parts.timers;
    this.random = parts.random;
  }

  /** Calls a peer, or this node by its own id. Errors: as `PeerCalls`. */
  call(peer: PeerId, call: DataCall, timeoutMs: number): Promise<DataAnswer> {
    const { answer, assignments, calls } = this.parts;
    return peer === assignments.peerId ? this.#inTime(answer(peer, call), timeoutMs) : calls.call(peer, call, timeoutMs);
  }

  /** Limits the time of a call to this node, whose disk may be slow. */
  #inTime(answer: Promise<DataAnswer>, timeoutMs: number): Promise<DataAnswer> {
    return new Promise((resolve, reject) => {
      const stop = this.timers.after(timeoutMs, () => {
        reject(new LostAnswer('timeout', `this node has not answered within ${timeoutMs} ms`));
      });
      answer.finally(stop).then(resolve, reject);
    });
  }

  pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.timers.after(milliseconds, resolve));
  }

  /** Resolves when the agreed state of a shard differs from `known`, or after `milliseconds`. */
  changed(shard: ShardAddress, known: Assignment, milliseconds: number): Promise<void> {
    const now = this.assignments.of(shard);
    if (now === null || now.term !== known.term || now.leader !== known.leader) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        stopTimer();
        stopWatch();
        resolve();
      };
      const stopTimer = this.timers.after(milliseconds, end);
      const stopWatch = this.assignments.watch(shard, end);
    });
  }
}
