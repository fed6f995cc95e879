import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { allowedAddresses } from '../../../storage/snapshot-store/address-rules.js';
import { type FetchPorts, type FetchRules, fetchArchive } from '../../../storage/snapshot-store/fetch-archive.js';
import { smallFileSystem } from '../../machine.js';
import { bytesOf, noEnd, sha256Of, sha256OfFile, temporaryFolder } from './support.js';

const CONTENT = bytesOf(700_000, 1);
const OPEN: FetchRules = { guarded: false, allowed: allowedAddresses([]).allowed, peers: [] };
const GUARDED: FetchRules = { ...OPEN, guarded: true };

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

interface Host {
  readonly port: number;
  readonly url: string;
  readonly requests: IncomingMessage[];
}

async function hostFor(t: TestContext, answer: Answer): Promise<Host> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, requests };
}

const whole: Answer = (_, response) => response.end(CONTENT);

interface Fetched {
  readonly bytes: number;
  readonly file: string;
  readonly warnings: Readonly<Record<string, string>>[];
}

async function fetched(
  t: TestContext,
  url: string,
  rules = OPEN,
  { apiKey = null, signal = noEnd(), ...ports }: Partial<FetchPorts> & { apiKey?: string | null; signal?: AbortSignal } = {},
): Promise<Fetched> {
  const folder = temporaryFolder(t);
  const file = join(folder, 'fetched');
  const warnings: Readonly<Record<string, string>>[] = [];
  const warn: FetchPorts['warn'] = (_, facts) => warnings.push(facts);
  try {
    const bytes = await fetchArchive({ url: new URL(url), file, apiKey, freeBytesMin: 0 }, rules, { ...ports, warn }, signal);
    return { bytes, file, warnings };
  } catch (error) {
    assert.deepEqual(readdirSync(folder), [], 'a failed call leaves no file');
    throw error;
  }
}

test('an archive is fetched byte for byte, with a length and without one', async (t) => {
  for (const headers of [{ 'content-length': CONTENT.length }, {}]) {
    const host = await hostFor(t, (_, response) => {
      response.writeHead(200, headers);
      response.end(CONTENT);
    });
    const { bytes, file } = await fetched(t, `${host.url}/a.snapshot?x=1`);
    assert.equal(bytes, CONTENT.length);
    assert.equal(await sha256OfFile(file), sha256Of(CONTENT));
    assert.equal(host.requests[0]?.url, '/a.snapshot?x=1');
    assert.equal(host.requests[0]?.headers['accept-encoding'], 'identity');
  }
});

test('without keys, an address that is not public is taken with a warning', async (t) => {
  const host = await hostFor(t, whole);
  const { warnings } = await fetched(t, host.url);
  assert.deepEqual(warnings, [{ host: '127.0.0.1', address: '127.0.0.1', range: 'loopback' }]);
});

test('with keys, an address that is not public is refused before anything is sent (Fetch-U1)', async (t) => {
  const host = await hostFor(t, whole);
  const forms = [
    `127.0.0.1:${host.port}`,
    `localhost:${host.port}`,
    `2130706433:${host.port}`,
    `0x7f.1:${host.port}`,
    `[::1]:${host.port}`,
  ];
  for (const form of [
    ...forms,
    `[::ffff:127.0.0.1]:${host.port}`,
    `0.0.0.0:${host.port}`,
    '169.254.169.254',
    '[64:ff9b::7f00:1]',
    '10.0.0.1',
  ]) {
    await assert.rejects(
      fetched(t, `http://${form}/`, GUARDED),
      { code: 'forbidden', message: /not public \(.*`service\.snapshot_url_allow`/ },
      form,
    );
  }
  assert.equal(host.requests.length, 0);
});

test('with keys, what is listed or a peer is taken without a warning', async (t) => {
  const host = await hostFor(t, whole);
  const url = `http://store.test:${host.port}/`;
  const resolve = async () => ['127.0.0.1'];
  const lists: FetchRules[] = [
    { ...GUARDED, allowed: allowedAddresses(['127.0.0.0/8']).allowed },
    { ...GUARDED, allowed: allowedAddresses(['127.0.0.1']).allowed },
    { ...GUARDED, allowed: allowedAddresses(['STORE.test']).allowed },
    { ...GUARDED, peers: ['store.test'] },
    { ...GUARDED, peers: ['10.0.0.1', '127.0.0.1'] },
  ];
  for (const rules of lists) assert.deepEqual((await fetched(t, url, rules, { resolve })).warnings, []);
  await assert.rejects(fetched(t, url, { ...GUARDED, peers: ['other.test'] }, { resolve }), { code: 'forbidden' });
});

test('a name is resolved once, and the connection goes to the address that was checked (Fetch-U2)', async (t) => {
  const host = await hostFor(t, whole);
  let asked = 0;
  // A name that leads elsewhere when it is asked for again, and that the system does not know at all.
  const resolve = async () => (asked++ === 0 ? ['127.0.0.1'] : ['169.254.169.254']);
  const rules = { ...GUARDED, allowed: allowedAddresses(['127.0.0.1']).allowed };
  const { bytes } = await fetched(t, `http://rebinding.test:${host.port}/`, rules, { resolve });
  assert.equal(bytes, CONTENT.length);
  assert.equal(asked, 1);
  assert.equal(host.requests[0]?.headers.host, `rebinding.test:${host.port}`);
});

test('a name of which one address is refused is refused', async (t) => {
  const resolve = async () => ['93.184.215.14', '10.0.0.1'];
  await assert.rejects(fetched(t, 'http://mixed.test/', GUARDED, { resolve }), { code: 'forbidden', message: /mixed\.test.*\(private\)/ });
});

test('redirects are followed, five at most', async (t) => {
  const host = await hostFor(t, (request, response) => {
    const left = Number((request.url ?? '').slice(1));
    if (left === 0) response.end(CONTENT);
    else response.writeHead([301, 302, 303, 307, 308][left % 5] as number, { location: `/${left - 1}` }).end('moved');
  });
  assert.equal((await fetched(t, `${host.url}/5`)).bytes, CONTENT.length);
  await assert.rejects(fetched(t, `${host.url}/6`), { code: 'badRequest', message: /redirected 6 times, and 5 are followed/ });
});

test('each redirect is checked: a listed host that leads to one that is not is refused (Fetch-U1)', async (t) => {
  const inner = await hostFor(t, whole);
  const outer = await hostFor(t, (_, response) => response.writeHead(302, { location: `http://inner.test:${inner.port}/` }).end());
  const rules = { ...GUARDED, allowed: allowedAddresses(['outer.test']).allowed };
  const resolve = async () => ['127.0.0.1'];
  await assert.rejects(fetched(t, `http://outer.test:${outer.port}/`, rules, { resolve }), {
    code: 'forbidden',
    message: /a redirect leads to inner\.test/,
  });
  assert.equal(outer.requests.length, 1);
  assert.equal(inner.requests.length, 0);
});

test('redirects to other schemes and to what is no URL are refused', async (t) => {
  for (const location of ['file:///etc/hostname', 'ftp://127.0.0.1/x', 'gopher://x', 'http://[']) {
    const host = await hostFor(t, (_, response) => response.writeHead(302, { location }).end());
    await assert.rejects(fetched(t, host.url), { code: 'badRequest', message: /it redirects to/ }, location);
  }
});

test('the key goes to the origin of the URL alone, before and after redirects (Fetch-U3)', async (t) => {
  const other = await hostFor(t, whole);
  const first = await hostFor(t, (request, response) => {
    const location = request.url === '/there' ? other.url : '/there';
    response.writeHead(302, { location }).end();
  });
  await fetched(t, first.url, OPEN, { apiKey: 'secret' });
  assert.deepEqual(
    first.requests.map(({ headers }) => headers['api-key']),
    ['secret', 'secret'],
  );
  assert.deepEqual(
    other.requests.map(({ headers }) => headers['api-key']),
    [undefined],
  );
});

test('a name and a password of the URL are sent, and neither they nor the query are told', async (t) => {
  const host = await hostFor(t, (_, response) => response.writeHead(404).end());
  const url = `http://me:s%40crt@127.0.0.1:${host.port}/a.snapshot?signature=hidden`;
  await assert.rejects(fetched(t, url), {
    message: `Wrong input: Failed to download tar from ${host.url}/a.snapshot?…: status - 404 Not Found`,
  });
  assert.equal(host.requests[0]?.headers.authorization, `Basic ${Buffer.from('me:s@crt').toString('base64')}`);
});

test('an answer that is no archive is told with its status', async (t) => {
  const host = await hostFor(t, (_, response) => response.writeHead(404).end('not here'));
  await assert.rejects(fetched(t, `${host.url}/nope.snapshot`), {
    code: 'wrongInput',
    message: `Wrong input: Failed to download tar from ${host.url}/nope.snapshot: status - 404 Not Found`,
  });
});

test('an address where nobody listens, and a name that nobody knows, are errors of the client with the reason', async (t) => {
  await assert.rejects(fetched(t, 'http://127.0.0.1:9/x.snapshot'), {
    code: 'badRequest',
    message: /127\.0\.0\.1:9\/x\.snapshot: .*ECONNREFUSED/,
  });
  const resolve = async () => Promise.reject(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }));
  await assert.rejects(fetched(t, 'http://nobody.test/', OPEN, { resolve }), { code: 'badRequest', message: /nobody\.test.*ENOTFOUND/ });
  await assert.rejects(fetched(t, 'http://nobody.test/', OPEN, { resolve: async () => [] }), { code: 'badRequest', message: /no address/ });
});

test('a connection that breaks off is an error, and leaves no file', async (t) => {
  const host = await hostFor(t, (request, response) => {
    response.writeHead(200, { 'content-length': CONTENT.length });
    response.write(CONTENT.subarray(0, 1000), () => request.socket.destroy());
  });
  await assert.rejects(fetched(t, host.url), { code: 'badRequest', message: /has broken off/ });
});

test('an answer that is encoded is refused', async (t) => {
  const host = await hostFor(t, (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(CONTENT));
  await assert.rejects(fetched(t, host.url), { code: 'badRequest', message: /encoded as gzip/ });
});

test('a host that says nothing more is given up, before its answer and within it', async (t) => {
  const silent = await hostFor(t, () => undefined);
  await assert.rejects(fetched(t, silent.url, OPEN, { silenceMs: 200 }), { code: 'badRequest', message: /nothing more has come/ });
  const stuck = await hostFor(t, (_, response) => {
    response.writeHead(200, { 'content-length': CONTENT.length });
    response.write(CONTENT.subarray(0, 1000));
  });
  await assert.rejects(fetched(t, stuck.url, OPEN, { silenceMs: 200 }), { code: 'badRequest', message: /nothing more has come/ });
});

test('a call that is cancelled ends at once: while the name is resolved, before the answer and within it', async (t) => {
  const never = new Promise<readonly string[]>(() => undefined);
  const atResolving = new AbortController();
  const resolving = fetched(t, 'http://slow.test/', OPEN, { resolve: () => never, signal: atResolving.signal });
  atResolving.abort();
  await assert.rejects(resolving, { code: 'unavailable' });

  const atRequest = new AbortController();
  const silent = await hostFor(t, () => atRequest.abort(new TroupeError('timeout', 'too late')));
  await assert.rejects(fetched(t, silent.url, OPEN, { signal: atRequest.signal }), { code: 'timeout' });

  const atBody = new AbortController();
  const stuck = await hostFor(t, (_, response) => {
    response.writeHead(200, { 'content-length': CONTENT.length });
    response.write(CONTENT.subarray(0, 300_000), () => atBody.abort());
  });
  await assert.rejects(fetched(t, stuck.url, OPEN, { signal: atBody.signal }), { code: 'unavailable' });
});

test('an archive that does not fit on the disk is refused before it is fetched, where its length is known, and stopped where not', async (t) => {
  const folder = smallFileSystem(t, 4);
  if (folder === null) return;
  const file = join(folder, 'fetched');
  let sent = 0;
  const known = await hostFor(t, (_, response) => {
    response.writeHead(200, { 'content-length': 8 << 20 });
    response.write(Buffer.alloc(1000));
  });
  const endless = await hostFor(t, (_, response) => {
    const more = () => {
      sent += CONTENT.length;
      if (!response.destroyed) response.write(CONTENT, more);
    };
    more();
  });
  for (const host of [known, endless]) {
    const order = { url: new URL(host.url), file, apiKey: null, freeBytesMin: 1 << 20 };
    await assert.rejects(fetchArchive(order, OPEN, { warn: () => undefined }, noEnd()), { code: 'outOfDisk' });
    assert.equal(existsSync(file), false);
  }
  assert.ok(sent < 64 << 20, `${sent} bytes were sent to a disk of 4 MB`);
});
