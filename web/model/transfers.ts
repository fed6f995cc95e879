/** Transfers of the whole cluster, as one list. */

import type { CollectionCluster, ShardTransfer, TransferReport } from './api-types.js';
import { shardRows } from './cluster-map.js';
import { bytes, count, digits, seconds } from './format.js';

/** A transfer that was agreed on, or a replica that waits for one. */
export interface TransferRow {
  readonly collection: string;
  readonly shardId: number;
  /** Null: nobody sends yet. */
  readonly from: number | null;
  readonly to: number;
  readonly method: string | null;
  /** How far it is, or why it waits. */
  readonly sentence: string;
  /** 0 to 1; null: not known here. */
  readonly share: number | null;
  /** The body that has it given up; null: there is nothing to give up. */
  readonly abort: object | null;
}

export interface TransferFacts {
  readonly collections: readonly { readonly name: string; readonly cluster: CollectionCluster }[];
  /** Those that the node which was asked runs. */
  readonly running: readonly TransferReport[];
  /** Why a peer cannot be reached; null: it can. */
  readonly failureOf: (peerId: number) => string | null;
}

/** Under way first, then what waits; by collection and shard. */
export function transferRows({ collections, failureOf, running }: TransferFacts): TransferRow[] {
  const rows = collections.flatMap(({ cluster, name }) => [
    ...cluster.shard_transfers.map((transfer) => agreedRow(name, transfer, running)),
    ...waitingRows(name, cluster, failureOf),
  ]);
  return rows.sort((one, other) => Number(one.from === null) - Number(other.from === null));
}

/** What is sent, and how fast. */
export function progressSentence(report: TransferReport): string {
  const { cause, eta_seconds: eta, failures = 0, rate = 0, stage = 'starting' } = report;
  const unit = report.bytes_total === undefined ? 'points' : 'bytes';
  const [sent = 0, total = 0] = unit === 'points' ? [report.points_sent, report.points_total] : [report.bytes_sent, report.bytes_total];
  const shown = (value: number): string => (unit === 'points' ? `${count(value)} points` : bytes(value));
  const parts = [stage];
  if (total > 0) parts.push(`${unit === 'points' ? count(sent) : bytes(sent)} of ${shown(total)}`);
  if (rate > 0) parts.push(`${unit === 'points' ? `${digits(rate)} points` : bytes(rate)} a second`);
  if (eta != null) parts.push(`${seconds(eta)} left`);
  if (failures > 0 && cause != null) parts.push(`${count(failures)} failed tries, the last: ${cause}`);
  return parts.join(', ');
}

function agreedRow(collection: string, transfer: ShardTransfer, running: readonly TransferReport[]): TransferRow {
  const { comment, from, method = null, shard_id: shardId, to } = transfer;
  const report = running.find((one) => one.collection === collection && one.shard_id === shardId && one.from === from && one.to === to);
  const [sent, total] = [report?.points_sent ?? report?.bytes_sent ?? 0, report?.points_total ?? report?.bytes_total ?? 0];
  return {
    collection,
    shardId,
    from,
    to,
    method,
    sentence: report === undefined ? (comment ?? 'agreed on; the node that sends says how far it is') : progressSentence(report),
    share: total === 0 ? null : sent / total,
    abort: {
      abort_transfer: {
        shard_id: shardId,
        from_peer_id: from,
        to_peer_id: to,
        ...(transfer.to_shard_id === undefined ? {} : { to_shard_id: transfer.to_shard_id }),
      },
    },
  };
}

function waitingRows(collection: string, cluster: CollectionCluster, failureOf: (peerId: number) => string | null): TransferRow[] {
  return shardRows(cluster).flatMap(({ replicas, shardId }) =>
    replicas
      .filter(
        ({ peerId, state }) =>
          state === 'Dead' && !cluster.shard_transfers.some(({ shard_id, to }) => shard_id === shardId && to === peerId),
      )
      .map(({ peerId }) => {
        const failure = failureOf(peerId);
        const hasSource = replicas.some(({ state }) => state === 'Active');
        const sentence =
          failure !== null
            ? `waits until its node can be reached: ${failure}`
            : hasSource
              ? 'waits for its turn: a node gets one transfer at a time, and none while it has only just come back'
              : 'waits for an Active replica of the shard to be filled from';
        return { collection, shardId, from: null, to: peerId, method: null, sentence, share: null, abort: null };
      }),
  );
}
