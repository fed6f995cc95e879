/**
 * `npm run clients:python`: installs the pinned Python client in an environment of its own, starts a node on free ports
 * and lets `test/clients/python/check.py` ask it over REST and gRPC: without keys, with a key and a token, and with a key over TLS; then a cluster
 * of two, for `shard_keys.py`. Leaves nothing behind. Where there is no Python it says so and ends with 0. TROUPE_SEED and TROUPE_ROUNDS repeat a run and set how many random requests it has.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { signedToken } from '../../http/access/token.js';
import { LocalCluster } from '../cluster/local-cluster.js';
import { type NodeProcessOptions, startNodeProcess } from '../node-process.js';
import { Authority } from '../tls/authority.js';
import { makeEnvironment, NO_PYTHON, runCommand, systemPython } from './python-environment.js';

const SCRIPTS = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'test', 'clients', 'python');
const ROUNDS_DEFAULT = 400;

const python = systemPython();
if (python === null) {
  console.log(NO_PYTHON);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-python-'));
  try {
    process.exitCode = await check(python, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The exit code of the checks. */
async function check(basePython: string, folder: string): Promise<number> {
  console.log('installing the client');
  const own = await makeEnvironment(basePython, folder, join(SCRIPTS, 'requirements.txt'));
  if (typeof own === 'number') return own;

  const seed = process.env.TROUPE_SEED ?? String(Date.now() % 1_000_000);
  const rounds = process.env.TROUPE_ROUNDS ?? String(ROUNDS_DEFAULT);
  console.log(`TROUPE_SEED=${seed} TROUPE_ROUNDS=${rounds}`);
  for (const [name, pass] of Object.entries(passesIn(folder))) {
    console.log(name);
    const node = await startNodeProcess({ folder: join(folder, name), ...pass.node });
    const argv = [join(SCRIPTS, 'check.py'), String(node.port), String(node.grpcPort), seed, rounds, ...pass.credentials];
    const code = await runCommand(own, argv, folder, pass.environment).finally(() => node.end('SIGTERM'));
    if (code !== 0) return code;
  }
  const cluster = await LocalCluster.start({ nodes: 2, folder: join(folder, 'cluster') });
  try {
    return await runCommand(
      own,
      [join(SCRIPTS, 'shard_keys.py'), ...cluster.nodes.map(({ grpcPort, port }) => `${port}:${grpcPort}`)],
      folder,
    );
  } finally {
    await cluster.close();
  }
}

interface Pass {
  readonly node: Omit<NodeProcessOptions, 'folder'>;
  /** Of the client over REST and of the one over gRPC. */
  readonly credentials: readonly string[];
  /** Of the script. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Ways to ask a node, each with a folder of its own, which is made. */
function passesIn(folder: string): Readonly<Record<string, Pass>> {
  const key = 'a-key-of-the-checks-0123456789abcdef';
  // Snapshots are recovered from the node itself.
  const keys = {
    SERVICE__SERVICE__API_KEY: key,
    SERVICE__SERVICE__JWT_RBAC: 'true',
    SERVICE__SERVICE__SNAPSHOT_URL_ALLOW: '127.0.0.1',
  };
  const authority = new Authority('authority of the checks', Date.now());
  const { cert, key: certKey } = authority.sign({ name: 'node', hosts: ['127.0.0.1'] });
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const ca = file('cacert.pem', authority.cert);
  const tls = {
    SERVICE__SERVICE__ENABLE_TLS: 'true',
    SERVICE__TLS__CERT: file('cert.pem', cert),
    SERVICE__TLS__KEY: file('key.pem', certKey),
    NODE_EXTRA_CA_CERTS: ca,
  };
  const passes = {
    'without keys': { node: {}, credentials: [], environment: {} },
    'with a key over REST and a token over gRPC': {
      node: { environment: keys },
      credentials: [key, signedToken({ access: 'm' }, key)],
      environment: {},
    },
    'with a token over REST and a key over gRPC, both over TLS': {
      node: { environment: { ...keys, ...tls }, tls: { ca: authority.cert } },
      credentials: [signedToken({ access: 'm' }, key), key],
      environment: { TROUPE_CA: ca },
    },
  };
  for (const name of Object.keys(passes)) mkdirSync(join(folder, name));
  return passes;
}
