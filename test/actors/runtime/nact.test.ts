import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openNactMailboxes } from '../../../actors/runtime/nact.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await turn();
}

test('messages are delivered in order, none inside the call that sends it', async () => {
  const mailboxes = openNactMailboxes();
  const received: unknown[] = [];
  const mailbox = mailboxes.open(null, 'one', (item) => received.push(item));
  for (let item = 0; item < 10; item++) mailbox.post(item);
  assert.deepEqual(received, []);
  await turns(40);
  assert.deepEqual(received, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  mailboxes.close();
});

test('a closed mailbox delivers nothing any more, and its name is free', async () => {
  const mailboxes = openNactMailboxes();
  const received: string[] = [];
  const first = mailboxes.open(null, 'name', (item) => received.push(`first ${item}`));
  first.post('a');
  first.close();
  first.post('b');
  mailboxes.open(null, 'name', (item) => received.push(`second ${item}`)).post('c');
  await turns(20);
  assert.deepEqual(received, ['second c']);
  mailboxes.close();
});

test('the names that collections give their actors are taken', async () => {
  const mailboxes = openNactMailboxes();
  const root = mailboxes.open(null, 'node', () => {});
  for (const name of ['plain-name_1', '+4dy+20', 'a++0123456789abcdef', '+e6+97+a5']) mailboxes.open(root, name, () => {});
  mailboxes.close();
});

test('messages of one mailbox keep their order while others take and give back what carries them', async () => {
  const mailboxes = openNactMailboxes();
  const received: string[] = [];
  const boxes = ['a', 'b', 'c'].map((name) => {
    const box = mailboxes.open(null, name, (item) => {
      received.push(`${name}${item}`);
      if (Number(item) < 20) box.post(Number(item) + 2);
    });
    return box;
  });
  for (const box of boxes) {
    box.post(0);
    box.post(1);
  }
  await turns(200);
  for (const name of ['a', 'b', 'c'])
    assert.deepEqual(
      received.filter((item) => item.startsWith(name)).map((item) => Number(item.slice(1))),
      Array.from({ length: 22 }, (_, at) => at),
    );
  mailboxes.close();
});

test('a message to a mailbox beside ten thousand others takes no longer than beside none', async () => {
  const mailboxes = openNactMailboxes();
  let received = 0;
  const root = mailboxes.open(null, 'root', () => received++);
  for (let at = 0; at < 10_000; at++) mailboxes.open(root, `child-${at}`, () => {}).post(null);
  await turns(10);
  const count = 2000;
  const cpu = process.cpuUsage();
  for (let at = 0; at < count; at++) root.post(at);
  while (received < count) await turn();
  const { system, user } = process.cpuUsage(cpu);
  // 0.5 ms each when the map of all children was copied for each.
  assert.ok((user + system) / count < 200, `${(user + system) / count} µs each`);
  mailboxes.close();
});

test('a mailbox takes messages without effect when all are closed', async () => {
  const mailboxes = openNactMailboxes();
  const received: unknown[] = [];
  const mailbox = mailboxes.open(null, 'late', (item) => received.push(item));
  mailboxes.close();
  mailbox.post(1);
  await turns(5);
  assert.deepEqual(received, []);
});
