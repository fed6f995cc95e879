/**
 * The plain path of the REST server against Node's HTTP server with Fastify: random requests, most of them unusual or broken, get the same
 * bytes from both, and reach the engine as the same requests.
 *
 * Repeat a run with TROUPE_SEED=<seed>; `npm run fuzz` sends 1,000,000 requests (TROUPE_HEADS).
 */

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { LoneReader } from '../../../../http/rest/readers/door.js';
import { ROUTES } from '../../../../http/routes.js';
import { type RandomNumbers, seededRandom } from '../../../../ops/random.js';
import type { RawRequest } from '../../../../storage/threads/messages.js';
import { testSeed } from '../../../seed.js';
import { type Harness, openDoor } from '../fake-node.js';

const CASES = Number(process.env.TROUPE_HEADS ?? 10_000);
const SEED = testSeed();
/** These show the memory of the process, and durations. */
const NOT_COMPARED = ['/metrics', '/telemetry', '/cluster/telemetry'];
const COMPARED = ROUTES.filter(({ path }) => !NOT_COMPARED.includes(path));
/** Requests on one connection, one after the other. */
const SESSION = 8;
const AT_ONCE = 16;
interface Patience {
  /** A server that has not answered for so long waits for more; then the client ends its half of the connection. */
  readonly silenceMs: number;
  /** So long the client waits after an answer, since one to broken bytes may follow, and then the end. */
  readonly pauseMs: number;
}

const QUICK: Patience = { silenceMs: 100, pauseMs: 2 };
const PATIENT: Patience = { silenceMs: 3000, pauseMs: 500 };
const RESETS_MAX = 4;
const BODY_BYTES_MAX = 4000;
/** Stands among the answers where the client has ended its half of the connection. */
const CLIENT_ENDED = '<the client ends>';

for (const inReader of [false, true]) {
  const where = inReader ? 'a reader' : 'the main thread';
  test(`random requests get the same answers from the plain path of ${where} as from Fastify`, {
    timeout: 300_000 + CASES * 20,
  }, async (t) => {
    t.diagnostic(`TROUPE_SEED=${SEED}`);
    const random = seededRandom(SEED);
    const pairs = await Promise.all(Array.from({ length: AT_ONCE }, () => openPair(inReader)));
    t.after(() => Promise.all(pairs.flat().map(({ door }) => door.close(0))));
    const sums = { answered: 0, refused: 0 };
    // Connections that are piped to another server take longer to close, and so to compare.
    const cases = inReader ? CASES / 5 : CASES;
    let begun = 0;
    const compareNext = async (pair: readonly [Harness, Harness]): Promise<void> => {
      for (; begun < cases; ) {
        begun += SESSION;
        await compare(
          pair,
          Array.from({ length: SESSION }, () => sample(random)),
          inReader,
          sums,
        );
      }
    };
    await Promise.all(pairs.map(compareNext));
    t.diagnostic(`${sums.answered} answers, ${sums.refused} of them refused`);
    assert.ok(sums.refused > cases / 20 && sums.answered > cases / 2);
  });
}

async function openPair(inReader: boolean): Promise<[Harness, Harness]> {
  const options = { maxBodyBytes: BODY_BYTES_MAX, monotonicMs: () => 0, nowMs: () => 0 };
  const resultOf = (request: RawRequest | undefined) => Buffer.from(`"${'x'.repeat((request?.body?.length ?? 0) % 7)}"`);
  // The reader answers every other body by itself.
  const readAlone: LoneReader['readAlone'] = (collection, operation, request) => {
    if (!fast.node.exists(collection) || (request.body?.length ?? 0) % 2 === 0) return null;
    fast.node.asked.push({ collection, operation, request });
    return resultOf(request);
  };
  const fast = await openDoor({ ...options, ...(inReader ? { readAlone } : {}) });
  const standard = await openDoor({ ...options, fastPath: false });
  for (const { node } of [fast, standard]) {
    await node.createCollection('c', { params: {} } as never);
    // Requests of several connections make and list snapshots in any order.
    node.snapshots.isForgetful = true;
    node.answer = async () => resultOf(node.asked.at(-1)?.request);
  }
  return [fast, standard];
}

/**
 * A difference may come from a client that gave up too early on a busy machine, so the session is repeated with more patience. If a
 * connection was reset, it is repeated again: the client may have lost what it had not read yet when the server closed. So may a reader that
 * pipes a connection, which the client cannot see.
 */
async function compare(
  pair: readonly [Harness, Harness],
  session: readonly Buffer[],
  isPiped: boolean,
  sums: { answered: number; refused: number },
) {
  let compared = await tryCompare(pair, session, QUICK);
  for (let resets = 0; compared.difference !== null; ) {
    if (compared.wasReset || isPiped) resets++;
    compared = await tryCompare(pair, session, PATIENT);
    if (compared.difference !== null && (!(compared.wasReset || isPiped) || resets === RESETS_MAX)) assert.fail(compared.difference);
  }
  const { standard } = compared;
  sums.answered += standard.match(/HTTP\/1\.1 \d/g)?.length ?? 0;
  sums.refused += standard.match(/HTTP\/1\.1 4/g)?.length ?? 0;
}

interface Compared {
  /** All that Fastify answered. */
  readonly standard: string;
  /** Null: there is none. */
  readonly difference: string | null;
  readonly wasReset: boolean;
}

async function tryCompare(pair: readonly [Harness, Harness], session: readonly Buffer[], patience: Patience): Promise<Compared> {
  for (const { node } of pair) node.asked.length = 0;
  const talks = await Promise.all(pair.map((harness) => talk(harness.door.port, session, patience)));
  const [fast, standard] = talks as [Talk, Talk];
  const difference =
    differenceOf(fast.texts, standard.texts) ?? (isDeepStrictEqual(askedOf(pair[0]), askedOf(pair[1])) ? null : asked(pair));
  const shown = session.map((bytes) => JSON.stringify(bytes.toString('latin1'))).join('\n');
  return {
    standard: standard.texts.join(),
    difference: difference === null ? null : `${difference}\nto\n${shown}`,
    wasReset: fast.wasReset || standard.wasReset,
  };
}

function differenceOf(fast: readonly string[], standard: readonly string[]): string | null {
  for (let at = 0; at < Math.max(fast.length, standard.length); at++) {
    const [one, other] = [fast[at] ?? 'nothing', standard[at] ?? 'nothing'];
    if (!isSame(one, other)) return `the plain path answers:\n${one}\nFastify answers:\n${other}`;
  }
  return null;
}

function asked([fast, standard]: readonly [Harness, Harness]): string {
  return `the plain path asks:\n${inspect(askedOf(fast))}\nFastify asks:\n${inspect(askedOf(standard))}`;
}

/**
 * At broken bytes Node's server gives up the answer that it has not sent yet, while the plain path sends that first. A request that is refused
 * for its head is answered before the bytes behind it are read, or not, depending on how they came to Node's server (as events or straight
 * from the socket). Nothing of this holds where the client has ended within a request.
 */
function isSame(fast: string, standard: string): boolean {
  const [one, two] = [withoutLateBytes(fast), withoutLateBytes(standard)];
  if (one === two) return true;
  const [mine, other] = [one, two].map(beforeBroken) as [string | null, string | null];
  if (mine === null || other === null || one.slice(mine.length) !== two.slice(other.length)) return false;
  if (mine.startsWith(other)) return countAnswers(mine) === countAnswers(other) + 1;
  return other.startsWith(mine) && countAnswers(other) === countAnswers(mine) + 1 && !other.includes(CLIENT_ENDED);
}

/** Bytes behind the last request of a connection may be answered as broken, or come too late for it: Node's server does both. */
function withoutLateBytes(text: string): string {
  const before = beforeBroken(text) ?? text.replace(CLIENT_ENDED, '');
  const last = before.slice(before.lastIndexOf('HTTP/1.1 '));
  return /\r\nconnection: close\r\n/i.test(last) ? before : text;
}

/** What the server has sent before its answer to broken bytes; null if there is none. */
function beforeBroken(text: string): string | null {
  const broken = text.lastIndexOf('HTTP/1.1 400 Bad Request\r\nContent-Length');
  return broken === -1 ? null : text.slice(0, broken);
}

function askedOf({ node }: Harness) {
  return node.asked.map(({ collection, operation, request, wait }) => ({
    collection,
    operation,
    wait,
    path: { ...request.path },
    query: { ...request.query },
    body: request.body === null ? null : Buffer.from(request.body).toString('latin1'),
  }));
}

interface Talk {
  /** What the server answered on each connection, without dates. */
  readonly texts: string[];
  readonly wasReset: boolean;
}

/** Each request is sent when the one before is answered. */
async function talk(port: number, session: readonly Buffer[], patience: Patience): Promise<Talk> {
  const texts: string[] = [];
  let wasReset = false;
  for (let next = 0; next < session.length; ) {
    const part = await talkOnce(port, session.slice(next), patience);
    texts.push(withoutTimes(part.text));
    wasReset ||= part.wasReset;
    next += part.sent;
  }
  return { texts, wasReset };
}

/** A reader measures its own time, whose length changes that of the body. */
function withoutTimes(text: string): string {
  return text
    .replace(/\r\nDate: [^\r]*/g, '')
    .replace(/content-length: (\d+)((?:\r\n[^\r]+)*\r\n\r\n[^\r]*?"time":)([\d.e-]+)/g, (_, length: string, rest: string, time: string) => {
      return `content-length: ${Number(length) - time.length}${rest}`;
    });
}

/** As `talk`, on one connection, which the server may close. */
function talkOnce(
  port: number,
  session: readonly Buffer[],
  patience: Patience,
): Promise<{ text: string; sent: number; wasReset: boolean }> {
  return new Promise((resolve, reject) => {
    let text = '';
    let sent = 0;
    let answers = 0;
    let wasReset = false;
    let silence: NodeJS.Timeout | undefined;
    const socket: Socket = connect({ port, host: '127.0.0.1' }, send);
    const end = () => {
      clearTimeout(silence);
      resolve({ text, sent, wasReset });
    };
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const whole = countAnswers(text);
      if (whole === answers) return;
      answers = whole;
      // After this one the server closes.
      clearTimeout(silence);
      silence = setTimeout(() => text.includes('"message":"Client Error"') || send(), patience.pauseMs);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      wasReset = error.code === 'ECONNRESET' || error.code === 'EPIPE';
      if (wasReset) end();
      else reject(error);
    });
    socket.on('close', end);

    function send(): void {
      clearTimeout(silence);
      const bytes = session[sent];
      if (bytes === undefined || socket.writableEnded) {
        endClient();
        return;
      }
      sent++;
      const cut = bytes.length % 5 === 0 ? Math.floor(bytes.length / 3) : bytes.length;
      socket.write(bytes.subarray(0, cut));
      if (cut < bytes.length) setImmediate(() => socket.writable && socket.write(bytes.subarray(cut)));
      silence = setTimeout(endClient, patience.silenceMs);
    }

    function endClient(): void {
      if (!socket.writableEnded) text += CLIENT_ENDED;
      socket.end();
    }
  });
}

/** Whole answers in what has come. */
function countAnswers(text: string): number {
  let count = 0;
  for (let at = 0; ; count++) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end === -1) return count;
    const head = text.slice(at, end);
    at = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (at > text.length) return count;
    if (/ 100 Continue/.test(head)) count--;
  }
}

function sample(random: RandomNumbers): Buffer {
  const isPlain = random.integer(2) === 0;
  const route = pick(random, COMPARED);
  const isStrange = !isPlain && random.integer(4) === 0;
  const method = isStrange ? pick(random, ['OPTIONS', 'get', 'PUT', 'POST', 'GET', 'DELETE', 'PATCH', 'FOO']) : route.method;
  let path = route.path.replace(/\{(\w+)\}/g, () => pick(random, ['c', 'c', 'c', '5', 'none', 'aliases', 'points', 'a.b-c~_', 'search']));
  if (isStrange) path = pick(random, [`${path}/`, `/${path}`, `${path}/%63`, `${path}/%zz`, `${path}#x`, `http://x${path}`, '*', path]);
  const query = pick(random, [
    '',
    '',
    '',
    '?',
    '?timeout=5',
    '?wait=true',
    '?wait=x&wait=y',
    '?a=%20+b',
    '?consistency=all',
    '?timeout=0;',
  ]);
  const hasBody = route.method !== 'GET' && route.method !== 'DELETE' && random.integer(8) > 0;
  const body = hasBody ? 'x{"é}'.repeat(random.integer(random.integer(20) === 0 ? 1000 : 30)) : '';
  const length = Buffer.byteLength(body, 'latin1');
  const headers = isPlain ? plainHeaders(random, length) : oddHeaders(random, length);
  const bytes = Buffer.from(`${method} ${path}${query} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`, 'latin1');
  if (isPlain || random.integer(4) > 0) return bytes;
  const changes = random.integer(3) + 1;
  const strange = [0, 9, 10, 13, 32, 58, 127, 128, 255, 44, 48];
  for (let change = 0; change < changes; change++) bytes[random.integer(Math.max(1, bytes.length - length))] = pick(random, strange);
  return bytes;
}

function plainHeaders(random: RandomNumbers, length: number): string[] {
  return [
    'Host: localhost:6333',
    ...(random.integer(2) === 0 ? ['Accept: */*', 'User-Agent: test/1.0 (a; b)', 'Accept-Encoding: gzip, deflate'] : []),
    ...(random.integer(3) === 0 ? [] : ['Connection: keep-alive']),
    ...(length === 0 && random.integer(2) === 0 ? [] : [`Content-Length: ${length}`, 'Content-Type: application/json']),
  ];
}

function oddHeaders(random: RandomNumbers, length: number): string[] {
  const headers = plainHeaders(random, length);
  const odd = [
    'host: other',
    `content-length: ${length}`,
    `content-length: ${length + 1}`,
    `content-length: +${length}`,
    'transfer-encoding: chunked',
    'transfer-encoding: identity',
    'expect: 100-continue',
    'expect: nothing',
    'connection: close',
    'Connection: Upgrade',
    'upgrade: h2c',
    'origin: http://example.com',
    ' folded',
    'name:\tvalue ',
    'empty:',
    'no colon',
    'na me: value',
    'name : value',
    'umlaut: \u00e4',
    'te: trailers',
    `long: ${'x'.repeat(9000)}`,
    `longer: ${'x'.repeat(17_000)}`,
    'access-control-request-method: POST',
    'lone: a\nb: c',
    'cr: a\rb',
  ];
  const count = random.integer(3);
  for (let at = 0; at < count; at++) headers.splice(random.integer(headers.length + 1), 0, pick(random, odd));
  if (random.integer(10) === 0) headers.splice(random.integer(headers.length), 1);
  return headers;
}

function pick<Item>(random: RandomNumbers, items: readonly Item[]): Item {
  return items[random.integer(items.length)] as Item;
}
