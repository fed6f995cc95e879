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
