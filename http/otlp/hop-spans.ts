/**
 * Spans of what a call went through, below the span of the request: shards, segments and searches of a read; shards, leaders, replicas and
 * writers of a write.
 */

import type { ExplainedSearch, ExplainedSegment, ExplainedShard, Explanation } from '../../protocols/model/explanation.js';
import type { WriteHop } from '../../protocols/model/write-hop.js';
import type { AttributeValue, TraceSpan } from './span.js';

/** Of one request: a collection of very many segments would fill the queue. */
const SPANS_MAX = 200;

/**
 * request: the span of the request. newId: 16 hexadecimal digits. Durations are measured; begins are worked out from them: shards of a round begin
 * together after those of the round before, and what a thread did for a shard came one after the other.
 */
export function hopSpans(request: TraceSpan, { shards, stages }: Explanation, newId: () => string): readonly TraceSpan[] {
  const spans: TraceSpan[] = [];
  const child = (
    parent: TraceSpan,
    name: string,
    startUs: number,
    timeUs: number,
    attributes: Record<string, AttributeValue>,
  ): TraceSpan => {
    const { traceId } = request;
    const span: TraceSpan = {
      traceId,
      spanId: newId(),
      parentSpanId: parent.spanId,
      name,
      kind: 'internal',
      startUs,
      endUs: startUs + timeUs,
      attributes,
      isError: false,
    };
    spans.push(span);
    return span;
  };
  let roundUs = request.startUs + (stages.find(({ stage }) => stage === 'decode')?.time_us ?? 0);
  for (const round of roundsOf(shards)) {
    for (const shard of round) {
      const span = child(request, `shard ${shard.shard_id}`, roundUs, shard.time_us, shardFacts(shard));
      let segmentUs = roundUs;
      for (const segment of shard.segments) {
        const inner = child(span, `segment ${segment.segment_id}`, segmentUs, segment.time_us, segmentFacts(segment));
        let searchUs = segmentUs;
        for (const search of segment.searches) {
          child(inner, search.plan, searchUs, search.time_us, searchFacts(search));
          searchUs += search.time_us;
        }
        segmentUs += segment.time_us;
      }
    }
    roundUs += Math.max(...round.map(({ time_us: us }) => us));
  }
  return spans.slice(0, SPANS_MAX);
}

/** Hops of a write, each below the one that it is part of. */
export function writeSpans(request: TraceSpan, hops: readonly WriteHop[], newId: () => string): readonly TraceSpan[] {
  return hops.flatMap((hop) => writeSpan(request, hop, newId)).slice(0, SPANS_MAX);
}

function writeSpan({ spanId, traceId }: TraceSpan, hop: WriteHop, newId: () => string): readonly TraceSpan[] {
  const { endUs, facts, hops, name, startUs } = hop;
  const place = { traceId, spanId: newId(), parentSpanId: spanId };
  const span: TraceSpan = { ...place, name, kind: 'internal', startUs, endUs, attributes: facts, isError: false };
  return [span, ...hops.flatMap((inner) => writeSpan(span, inner, newId))];
}

function roundsOf(shards: readonly ExplainedShard[]): readonly (readonly ExplainedShard[])[] {
  const rounds = new Map<number, ExplainedShard[]>();
  for (const shard of shards) rounds.set(shard.round, [...(rounds.get(shard.round) ?? []), shard]);
  return [...rounds].sort(([one], [other]) => one - other).map(([, round]) => round);
}

function shardFacts({ peer_id: peer, shard_id: shard, thread }: ExplainedShard): Record<string, AttributeValue> {
  // Peer ids are beyond the whole numbers of some readers.
  return { 'troupe.shard_id': shard, 'thread.name': thread, ...(peer === null ? {} : { 'troupe.peer_id': String(peer) }) };
}

function segmentFacts({ kind, rows, segment_id: id }: ExplainedSegment): Record<string, AttributeValue> {
  return { 'troupe.segment_id': id, 'troupe.segment_kind': kind, 'troupe.rows': rows };
}

function searchFacts(search: ExplainedSearch): Record<string, AttributeValue> {
  const {
    bytes_read: bytes,
    ef,
    found,
    hops,
    level,
    matches,
    reason,
    rows_rescored: rescored,
    rows_scored: scored,
    scored_on: on,
  } = search;
  return {
    'troupe.level': level,
    'troupe.reason': reason,
    'troupe.rows_scored': scored,
    'troupe.rows_rescored': rescored,
    'troupe.bytes_read': bytes,
    'troupe.found': found,
    ...(on === null ? {} : { 'troupe.scored_on': on }),
    ...(ef === null ? {} : { 'troupe.ef': ef }),
    ...(hops === null ? {} : { 'troupe.hops': hops }),
    ...(matches === null ? {} : { 'troupe.matches': matches }),
  };
}
