/** A node with TLS for its clients: unmodified clients, tools of the machine, certificates that change, settings that do not fit. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { launchNode } from '../../ops/node-process.js';
import { freePorts } from '../../ops/ports.js';
import { RestClient } from '../../ops/rest-client.js';
import { Authority, type MadeCertificate } from '../../ops/tls/authority.js';
import { API_KEY, tokenOf } from '../http/access/tokens.js';
import { EXPECTED_OF_CREDENTIALS } from './clients/with-credentials.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const authority = new Authority('authority', Date.now());
const CLIENTS = fileURLToPath(new URL('./clients/tls-clients.js', import.meta.url));

function files(folder: string) {
  return { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), ca: join(folder, 'cacert.pem') };
}

function replace(folder: string, { cert, key }: MadeCertificate): void {
  const paths = files(folder);
  for (const [path, text] of [
    [paths.cert, cert],
    [paths.key, key],
    [paths.ca, authority.cert],
  ] as const) {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  }
}

function environmentOf(folder: string): Record<string, string> {
  const { ca, cert, key } = files(folder);
  return { SERVICE__SERVICE__ENABLE_TLS: 'true', SERVICE__TLS__CERT: cert, SERVICE__TLS__KEY: key, SERVICE__TLS__CA_CERT: ca };
}

async function secureNode(t: TestContext, more: Record<string, string> = {}, own?: MadeCertificate) {
  const folder = await temporaryFolder(t);
  replace(folder, authority.sign({ name: 'first', hosts: ['localhost', '127.0.0.1'] }));
  return {
    folder,
    ...(await nodeFor(t, { folder, environment: { ...environmentOf(folder), ...more }, tls: { ca: authority.cert, ...own } })),
  };
}

/** What a program prints, and how it ends. */
function run(
  command: string,
  argv: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number | null; out: string }> {
  const child = spawn(command, argv, { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => printed.push(chunk));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out: Buffer.concat(printed).toString() })));
}

function lacks(program: string, argument: string): string | false {
  return spawnSync(program, [argument]).status === 0 ? false : `there is no ${program} on this machine`;
}

test('unmodified clients work over TLS with keys and tokens; a changed certificate is shown while connections go on', async (t) => {
  const node = await secureNode(t, { SERVICE__SERVICE__API_KEY: API_KEY, SERVICE__SERVICE__JWT_RBAC: 'true' });
  const reader = tokenOf({ access: [{ collection: 'c', access: 'r' }] });
  const stranger = tokenOf({ access: [{ collection: 'another', access: 'rw' }] });
  const argv = [CLIENTS, String(node.port), String(node.grpcPort), JSON.stringify({ key: API_KEY, reader, stranger })];
  const { ca } = files(node.folder);
  const { out } = await run(process.execPath, argv, { NODE_EXTRA_CA_CERTS: ca });
  assert.deepEqual(JSON.parse(out), EXPECTED_OF_CREDENTIALS);
  assert.match((await run(process.execPath, argv)).out, /unable to verify|self.signed|fetch failed/i);
  // Also requests that a reader hands on to the HTTP server of the main thread.
  const count = `POST /collections/c/points/count HTTP/1.1\r\nHost: a\r\nApi-Key: ${API_KEY}\r\n`;
  const chunked = `${count}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`;
  const old = connect({ host: '127.0.0.1', port: node.port, ca: authority.cert });
  t.after(() => old.destroy());
  let said = '';
  old.on('data', (chunk) => {
    said += chunk.toString('latin1');
  });
  old.write(chunked);
  await until(
    async () => said,
    (text) => text.includes('"count":500'),
  );

  replace(node.folder, authority.sign({ name: 'second', hosts: ['localhost', '127.0.0.1'] }));
  for (const port of [node.port, node.grpcPort])
    await until(
      () => shownName(port),
      (name) => name === 'second',
    );
  // Each reader has a server of its own.
  for (let at = 0; at < 20; at++) assert.equal(await shownName(node.port), 'second');
  said = '';
  old.write(chunked);
  await until(
    async () => said,
    (text) => text.includes('"count":500'),
  );
  replace(node.folder, { ...authority.sign({ name: 'third' }), key: 'broken' });
  await until(
    async () => node.log(),
    (log) => /ERROR.*the changed files of TLS cannot be used.*tls\.key: /.test(log),
  );
  assert.equal(await shownName(node.port), 'second');
  assert.deepEqual(await node.end('SIGTERM'), { code: 0, signal: null });
});

/** Common name of the certificate that a port shows now. */
function shownName(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca: authority.cert, ALPNProtocols: ['h2', 'http/1.1'] }, () => {
      resolve(socket.getPeerCertificate().subject.CN as string);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

test('openssl and curl agree: TLS 1.2 and 1.3, protocols by port, client certificates wanted', async (t) => {
  const client = authority.sign({ name: 'client', uses: ['client'] });
  const node = await secureNode(t, { SERVICE__SERVICE__VERIFY_HTTPS_CLIENT_CERTIFICATE: 'true' }, client);
  const { ca } = files(node.folder);
  const own = { cert: join(node.folder, 'client.pem'), key: join(node.folder, 'client-key.pem') };
  writeFileSync(own.cert, client.cert);
  writeFileSync(own.key, client.key);
  await t.test('openssl', { skip: lacks('openssl', 'version') }, async () => {
    const show = (port: number, ...options: string[]) =>
      run('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, '-CAfile', ca, '-cert', own.cert, '-key', own.key, ...options]);
    assert.match((await show(node.port, '-tls1_2', '-alpn', 'h2,http/1.1')).out, /ALPN protocol: http\/1\.1[\s\S]*Verify return code: 0/);
    assert.match((await show(node.grpcPort, '-tls1_3', '-alpn', 'h2')).out, /ALPN protocol: h2/);
    const old = await show(node.port, '-tls1_1', '-cipher', 'DEFAULT@SECLEVEL=0');
    assert.notEqual(old.code, 0);
    assert.match(old.out, /alert protocol version|unsupported protocol|no protocols available/);
  });
  await t.test('curl', { skip: lacks('curl', '--version') }, async () => {
    const url = `https://localhost:${node.port}/healthz`;
    assert.match((await run('curl', ['-sS', '--cacert', ca, '--cert', own.cert, '--key', own.key, url])).out, /healthz check passed/);
    assert.notEqual((await run('curl', ['-sS', '--cacert', ca, url])).code, 0);
    assert.notEqual((await run('curl', ['-sS', url])).code, 0);
    assert.match((await run('curl', ['-sS', `http://localhost:${node.port}/healthz`])).out, /use https:\/\//);
  });
  const without = new RestClient(node.port, 1, { ca: authority.cert });
  t.after(() => without.close());
  await assert.rejects(without.call('GET', '/healthz'));
});

test('a start with half of TLS ends with 1, names the key, and leaves nothing begun', async (t) => {
  const folder = await temporaryFolder(t);
  const [port, grpcPort] = (await freePorts(2)) as [number, number];
  const node = launchNode({ folder, port, grpcPort, environment: environmentOf(folder) });
  assert.deepEqual(await node.exited, { code: 1, signal: null });
  assert.match(node.log(), /^troupe: tls\.cert: cannot read .*\ntroupe: tls\.key: cannot read .*\n$/);
});
