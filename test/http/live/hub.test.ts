import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { test } from 'node:test';
import type { LiveChange, LiveGroup } from '../../../actors/live/topics.js';
import { LiveHub, topicsFrom } from '../../../http/live/hub.js';
import { EventParser } from '../../../web/model/event-stream.js';
import { fakeMemory } from '../rest/fake-node.js';

interface Told {
  readonly name: string;
  readonly groups: readonly LiveGroup[];
}

function start() {
  const listeners = new Set<(change: LiveChange) => void>();
  const there = new Map<string, LiveGroup[]>();
  const node = {
    live: async () => ({
      subscribe: (listener: (change: LiveChange) => void) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      snapshot: (topic: string) => there.get(topic) ?? [],
    }),
  };
  const hub = new LiveHub({ node, memory: fakeMemory(), monotonicMs: () => 0 });
  const open = (lastEventId?: string, follow = true) => hub.open({ topics: topicsFrom('collections,replicas'), lastEventId, follow });
  const change = (group: string, topic: LiveChange['topic'] = 'collections'): void => {
    for (const listener of listeners) listener({ topic, groups: [{ group, items: [{ name: group }] }] });
  };
  return { hub, listeners, there, open, change };
}

/** Reads until an event of this name and group has come; answers all that came. */
async function read(body: Readable, parser: EventParser, until: (told: Told) => boolean): Promise<Told[]> {
  const all: Told[] = [];
  for (;;) {
    const chunk = body.read() as Buffer | null;
    if (chunk === null) {
      await new Promise((resolve) => body.once('readable', resolve));
      continue;
    }
    for (const { data, name } of parser.push(String(chunk)))
      all.push({ name, groups: (JSON.parse(data) as { groups?: LiveGroup[] }).groups ?? [] });
    if (all.some(until)) return all;
  }
}

const named = (told: readonly Told[]): string[] => told.map(({ groups, name }) => [name, ...groups.map(({ group }) => group)].join(' '));
const isReady = ({ name }: Told): boolean => name === 'ready';
const isOf =
  (group: string) =>
  ({ groups }: Told): boolean =>
    groups.some((one) => one.group === group);

test('a client gets what is there, in portions, and then what changes; also what changed meanwhile', async () => {
  const { change, hub, open, there } = start();
  there.set(
    'collections',
    Array.from({ length: 60 }, (_, at) => ({ group: `c${at}`, items: [{}] })),
  );
  const parser = new EventParser();
  const body = await open();
  body.read(0);
  change('meanwhile');
  change('of no interest', 'actors');
  const told = await read(body, parser, isOf('meanwhile'));
  assert.deepEqual(
    told.map(({ groups, name }) => `${name} ${groups.length}`),
    ['hello 0', 'collections 50', 'collections 10', 'ready 0', 'collections 1'],
  );
  change('later', 'replicas');
  assert.deepEqual(named(await read(body, parser, isOf('later'))), ['replicas later']);
  hub.close();
});

test('a client that comes back with its last id gets what it missed, and after too long a time all anew', async () => {
  const { change, hub, open } = start();
  const parser = new EventParser();
  const first = await open();
  await read(first, parser, isReady);
  change('a');
  await read(first, parser, isOf('a'));
  first.destroy();
  change('b');
  const second = await open(parser.lastId);
  assert.deepEqual(named(await read(second, parser, isOf('b'))), ['hello', 'collections b']);
  second.destroy();
  for (let at = 0; at < 600; at++) change(`many ${at}`);
  const third = await open(parser.lastId);
  assert.deepEqual(named(await read(third, new EventParser(), isReady)), ['hello', 'ready']);
  const stranger = await open('0-1');
  assert.deepEqual(named(await read(stranger, new EventParser(), isReady)), ['hello', 'ready']);
  hub.close();
});

test('a client that takes too little is cut off, and the others go on', async () => {
  const { change, hub, open } = start();
  const [slow, quick] = [await open(), await open()];
  const parser = new EventParser();
  await read(quick, parser, isReady);
  const ended = new Promise((resolve) => slow.once('close', resolve));
  const large = 'x'.repeat(10_000);
  for (let at = 0; at < 40; at++) {
    change(`${at} ${large}`);
    await read(quick, parser, isOf(`${at} ${large}`));
  }
  await ended;
  assert.deepEqual({ ...hub.report(), events: 0 }, { clients: 1, clientsMax: 64, opened: 2, cut: 1, events: 0 });
  hub.close();
});

test('without following the answer ends with what is there', async () => {
  const { hub, open, there } = start();
  there.set('replicas', [{ group: 'c', items: [{}] }]);
  const chunks: string[] = [];
  for await (const chunk of await open(undefined, false)) chunks.push(String(chunk));
  assert.match(chunks.join(''), /^retry: 2000\nevent: hello\n.*event: replicas\n.*event: ready\n.*\n\n$/s);
  hub.close();
});

test('there is a bound on the number of clients, and a node that stops ends them all', async () => {
  const { hub, listeners, open } = start();
  const bodies = await Promise.all(Array.from({ length: 64 }, () => open()));
  await assert.rejects(open(), { code: 'busy' });
  (bodies[0] as Readable).destroy();
  await new Promise((resolve) => setImmediate(resolve));
  const last = await open();
  await read(last, new EventParser(), isReady);
  const ended = new Promise((resolve) => last.once('close', resolve));
  hub.close();
  last.resume();
  await ended;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listeners.size, 0);
  await assert.rejects(open(), { code: 'unavailable' });
});

test('topics are named, and a wrong one is told with those that there are', () => {
  assert.deepEqual(topicsFrom('replicas, collections'), ['collections', 'replicas']);
  assert.equal(topicsFrom(undefined).length, 5);
  assert.throws(() => topicsFrom('replica'), /no topic `replica`: name some of collections, replicas/);
});
