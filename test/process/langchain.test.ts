/** A vector store of LangChain over a plain node, and over one with a key and TLS. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Authority } from '../../ops/tls/authority.js';
import { API_KEY } from '../http/access/tokens.js';
import { useVectorStore } from './clients/langchain.js';
import { nodeFor, temporaryFolder } from './support.js';

test('a vector store of LangChain adds, searches, filters, diversifies and deletes documents', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context) });
  await useVectorStore(node.url);
});

test('it does so with a key over TLS', async (context) => {
  const { ca, environment, folder } = await secured(context);
  const node = await nodeFor(context, { folder, environment, tls: { ca } });
  // Which authorities a process trusts is decided when it starts.
  const program = fileURLToPath(new URL('./clients/langchain.js', import.meta.url));
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: environment.SERVICE__TLS__CA_CERT };
  const child = spawn(process.execPath, [program, node.url, API_KEY], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const said: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => said.push(chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  assert.equal(code, 0, Buffer.concat(said).toString());
});

async function secured(context: TestContext) {
  const folder = await temporaryFolder(context);
  const authority = new Authority('authority', Date.now());
  const { cert, key } = authority.sign({ name: 'node', hosts: ['127.0.0.1'] });
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const environment = {
    SERVICE__SERVICE__API_KEY: API_KEY,
    SERVICE__SERVICE__ENABLE_TLS: 'true',
    SERVICE__TLS__CERT: file('cert.pem', cert),
    SERVICE__TLS__KEY: file('key.pem', key),
    SERVICE__TLS__CA_CERT: file('cacert.pem', authority.cert),
  };
  return { folder, ca: authority.cert, environment };
}
