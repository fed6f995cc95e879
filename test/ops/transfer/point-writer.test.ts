import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NodeConnection, NodeRefusal } from '../../../ops/client/connection.js';
import { EXIT, ToolError } from '../../../ops/client/tool.js';
import { PointWriter } from '../../../ops/transfer/point-writer.js';

/** A node that answers with these errors, one after the other, and then takes everything. */
function writerTo(errors: unknown[], pointsPerSecond: number | null = null) {
  const sent: number[] = [];
  const pauses: number[] = [];
  let nowMs = 0;
  const node = {
    result: async (_method: string, _path: string, body: string) => {
      const error = errors.shift();
      if (error !== undefined) throw error;
      sent.push((JSON.parse(body) as { points: unknown[] }).points.length);
    },
  };
  const pause = async (ms: number): Promise<void> => {
    pauses.push(ms);
    nowMs += ms;
  };
  const options = { collection: 'c', pointsPerSecond, retriesMax: 3, onRetry: () => {} };
  const writer = new PointWriter(node as unknown as NodeConnection, options, { nowMs: () => nowMs, pause });
  return { writer, sent, pauses };
}

const POINTS = Array.from({ length: 10 }, (_, id) => ({ id, vector: [1] }));
const away = () => new ToolError('away', EXIT.unreachable);

test('a node that is away or busy is asked again, with pauses that double, and at least as long as it asks for', async () => {
  const { pauses, sent, writer } = writerTo([away(), new NodeRefusal('busy', 429, 4000), new NodeRefusal('later', 503, null)]);
  await writer.write(POINTS);
  assert.deepEqual([sent, pauses], [[10], [250, 4000, 1000]]);
});

test('what is wrong with the points is not sent again, and a node that stays away ends it', async () => {
  const wrong = writerTo([new NodeRefusal('wrong vector', 400, null)]);
  await assert.rejects(wrong.writer.write(POINTS), /wrong vector/);
  assert.deepEqual(wrong.pauses, []);
  const gone = writerTo([away(), away(), away(), away()]);
  await assert.rejects(gone.writer.write(POINTS), /away/);
  assert.equal(gone.pauses.length, 3);
});

test('points go out no faster than the rate', async () => {
  const { pauses, writer } = writerTo([], 5);
  for (let times = 0; times < 3; times++) await writer.write(POINTS);
  assert.deepEqual(pauses, [2000, 2000]);
});

test('points whose text is larger than a node takes go in halves', async () => {
  const { sent, writer } = writerTo([]);
  await writer.write(POINTS.map((point) => ({ ...point, payload: { text: 'x'.repeat(3_000_000) } })));
  assert.deepEqual(
    sent,
    [5, 5].flatMap((half) => [half]),
  );
});
