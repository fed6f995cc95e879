/** Reports of a node with many collections: what is done for how many of them between two looks of the event loop. */

import assert from 'node:assert/strict';
import { type ClientRequest, get } from 'node:http';
import { type TestContext, test } from 'node:test';
import { LongWorks } from '../../../actors/runtime/long-works.js';
import { callOperation } from '../../../http/embedded/in-process.js';
import { startGrpcDoor } from '../../../http/grpc/server.js';
import { TroupeError } from '../../../protocols/errors.js';
import { GrpcClient } from '../grpc/client.js';
import { type Harness, openDoor, until } from '../rest/fake-node.js';

const COUNT = 300;
/** Milliseconds of a turn (`TURN_MS`), and so steps in it where each takes one. */
const STEPS_PER_TURN = 3;
/** What one collection is asked for at most, as one step. */
const ASKED_PER_COLLECTION = 4;
const PATHS = [
  '/telemetry',
  '/telemetry?details_level=1',
  '/telemetry?details_level=3&anonymize=true',
  '/metrics',
  '/metrics?anonymize=true',
  '/collections',
];

/** A door to a node with many collections, and what has happened in its turns. */
interface Watched {
  readonly harness: Harness;
  /** Questions to the node about collections and actors in each turn so far. */
  readonly asked: number[];
  /** While false, no turn is given. */
  goesOn: boolean;
}

/** ticks: each look at the clock is a millisecond after the one before; else time stands still. */
async function watched(t: TestContext, ticks: boolean): Promise<Watched> {
  let nowMs = 0;
  const asked: number[] = [0];
  const kept: (() => void)[] = [];
  const works = new LongWorks({
    monotonicMs: () => (ticks ? nowMs++ : 0),
    later: (run) => {
      const turn = (): void => {
        asked.push(0);
        run();
      };
      if (self.goesOn) setImmediate(turn);
      else kept.push(turn);
    },
  });
  const harness = await openDoor({ works });
  t.after(() => harness.door.close(1000));
  const { node } = harness;
  for (let at = 0; at < COUNT; at++) node.collections.set(`c${at}`, { params: { vectors: { size: 4, distance: 'Dot' } } } as never);
  const count = <Args extends unknown[], Answer>(ask: (...args: Args) => Answer) => {
    return (...args: Args): Answer => {
      asked[asked.length - 1] = (asked.at(-1) as number) + 1;
      return ask(...args);
    };
  };
  node.info = count(node.info.bind(node));
  node.localShards = count(node.localShards.bind(node));
  node.optimizations = count(node.optimizations.bind(node));
  const root = node.telemetry() as { children: object[] };
  const actorOf = count((at: number) => ({ ...root.children[0], path: `/node/c${at}`, children: [] }));
  node.telemetry = () => ({
    ...root,
    children: {
      *[Symbol.iterator]() {
        for (let at = 0; at < COUNT; at++) yield actorOf(at);
      },
    },
  });
  let open = true;
  const self: Watched = {
    harness,
    asked,
    get goesOn() {
      return open;
    },
    set goesOn(value) {
      open = value;
      if (value) for (const turn of kept.splice(0)) setImmediate(turn);
    },
  };
  return self;
}

/** Without figures that differ between two questions. */
function steady(text: string): string {
  return text
    .replace(/"time":[\d.e-]+/, '')
    .replace(/"requests":\{.*?\}\}(,"memory"|\},"status")/, '')
    .replace(/"memory":\{"active.*?\}/, '')
    .replace(/"actors":.*?"recent":\[\]/, '')
    .split('\n')
    .filter((line) => !/(responses|memory|cpu_seconds|threads|open_fds)/.test(line))
    .join('\n');
}

test('between two looks of the event loop a report asks about a few collections, however many there are', async (t) => {
  const { asked, harness } = await watched(t, true);
  for (const path of PATHS) {
    asked.splice(0, asked.length, 0);
    // Packed, the length would be of other bytes.
    const response = await fetch(`${harness.url}${path}`, { headers: { 'accept-encoding': 'identity' } });
    const text = await response.text();
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)), path);
    assert.ok(Math.max(...asked) <= STEPS_PER_TURN * ASKED_PER_COLLECTION, `${path}: ${Math.max(...asked)} in one turn`);
    assert.ok(asked.length >= COUNT / STEPS_PER_TURN, `${path}: ${asked.length} turns`);
  }
});

test('a report in portions is the one that would be made at once', async (t) => {
  const [inPortions, atOnce] = [await watched(t, true), await watched(t, false)];
  for (const path of PATHS) {
    const [one, other] = await Promise.all(
      [inPortions, atOnce].map(async ({ harness: { url } }) => {
        const response = await fetch(`${url}${path}`);
        return { type: response.headers.get('content-type'), text: steady(await response.text()) };
      }),
    );
    assert.deepEqual(one, other, path);
  }
  assert.ok(inPortions.asked.length > 10 * atOnce.asked.length, 'one of them in few turns');
});

test('collections are listed over gRPC and in a program as over REST, in portions too', async (t) => {
  const { asked, harness } = await watched(t, true);
  const grpcDoor = await startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: 1 << 20, logRequests: false });
  const client = new GrpcClient(grpcDoor.port);
  t.after(async () => {
    client.close();
    await grpcDoor.close(1000);
  });
  const wanted = [...harness.node.collections.keys()].map((name) => ({ name }));
  asked.splice(0, asked.length, 0);
  assert.deepEqual((await client.call('Collections/List', {})).collections, wanted);
  assert.ok(asked.length > 1, `${asked.length} turns`);
  asked.splice(0, asked.length, 0);
  assert.deepEqual(await callOperation(harness.services, 'get_collections', {}), { collections: wanted });
  assert.ok(asked.length >= COUNT / STEPS_PER_TURN, `${asked.length} turns`);
});

test('clients that ask again and again and go away have one report made, and one more', async (t) => {
  const self = await watched(t, true);
  const { node } = self.harness;
  let begun = 0;
  const list = node.listCollections.bind(node);
  node.listCollections = () => {
    begun++;
    return list();
  };
  const open = (): ClientRequest => {
    const request = get(`${self.harness.url}/telemetry?details_level=1`, { agent: false });
    request.on('error', () => {});
    return request;
  };
  const first = open();
  await until(() => begun === 1);
  self.goesOn = false;
  first.destroy();
  let came = 0;
  const waitsForReport = self.harness.services.reports.text.bind(self.harness.services.reports);
  self.harness.services.reports.text = (key, write) => {
    came++;
    return waitsForReport(key, write);
  };
  for (let asks = 1; asks <= 10; asks++) {
    const request = open();
    await until(() => came === asks);
    request.destroy();
  }
  const staying = fetch(`${self.harness.url}/telemetry?details_level=1`);
  await until(() => came === 11);
  self.goesOn = true;
  assert.equal((await staying).status, 200);
  assert.equal(begun, 2);
});

test('a collection that is deleted while a report is made is left out; one that cannot be read is shown', async (t) => {
  const { harness } = await watched(t, true);
  const { node } = harness;
  const info = node.info.bind(node);
  node.info = (name) => {
    if (name === 'c1') node.collections.delete('c2');
    if (name === 'c3') throw new TroupeError('storage', 'the file is damaged');
    return info(name);
  };
  const ids = async () => {
    const { result } = (await (await fetch(`${harness.url}/telemetry?details_level=1`)).json()) as { result: Shown };
    return result.collections.collections.slice(0, 4).map(({ id, status }) => `${id} ${status}`);
  };
  assert.deepEqual(await ids(), ['c0 green', 'c1 green', 'c3 red', 'c4 green']);
  node.collections.set('c2', node.collections.get('c0') as never);
  const text = await (await fetch(`${harness.url}/metrics`)).text();
  assert.match(text, /^collection_dead_replicas 1$/m);
  assert.match(text, new RegExp(`^collections_total ${COUNT - 1}$`, 'm'));
});

interface Shown {
  readonly collections: { readonly collections: readonly { readonly id: string; readonly status: string }[] };
}
