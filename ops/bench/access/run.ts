/**
 * What access control, the audit log and TLS cost: nodes with the same points that differ in nothing but that are asked in turn, for short
 * slices, by the same requests.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signedToken } from '../../../http/access/token.js';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { type NodeAddress, RestClient } from '../../rest-client.js';
import { Authority } from '../../tls/authority.js';
import type { Dataset } from '../common/dataset.js';
import { startHelper } from '../common/helper.js';
import type { LoadAccess } from '../common/jobs.js';
import { readOperations } from '../requests/operations.js';
import { type Bench, type Figures, median, runSlice, type Slice, sliceFigures } from '../requests/slices.js';

export interface AccessCostSettings {
  /** Of each slice. */
  readonly requests: number;
  /** Slices of each operation for each kind of access. */
  readonly rounds: number;
}

export interface AccessCostRow {
  readonly protocol: 'rest' | 'grpc';
  readonly operation: string;
  readonly access: string;
  readonly figures: Figures;
  /** Medians over the pairs of slices with those of a node without keys: of CPU, and of what is more of it, in microseconds. */
  readonly ratio: number;
  readonly addedUs: number;
}

/** A way to ask one of the nodes. */
interface Way {
  readonly name: string;
  readonly node: RunningNode;
  /** A key or a token. */
  readonly credential?: string;
  /** Of the authority, where the node has TLS. */
  readonly ca?: string;
}

const COLLECTION = 'access';
const KEY = 'a-key-of-the-benchmark-0123456789';
const TENANT = { key: 'tenant', value: 't' };
const OPERATIONS = ['point by id', 'count of one match', 'search'];
const CONNECTIONS = 4;
const BATCH = 500;
const WARM_REQUESTS = 5000;

export async function measureAccess(dataset: Dataset, settings: AccessCostSettings, folder: string): Promise<AccessCostRow[]> {
  const nodes: RunningNode[] = [];
  const load = startHelper('load') as Bench['load'];
  try {
    const ways = await waysIn(folder, dataset, nodes);
    const bench: Bench = {
      sides: [],
      load,
      folder,
      settings: { seconds: 0, rounds: settings.rounds, connections: [CONNECTIONS], beside: null },
    };
    const rows: AccessCostRow[] = [];
    for (const operation of readOperations(COLLECTION, dataset).filter(({ name }) => OPERATIONS.includes(name))) {
      const slices = new Map<Way, Slice[]>(ways.map((way) => [way, []]));
      for (let round = 0; round <= settings.rounds; round++) {
        for (const way of round % 2 === 0 ? ways : [...ways].reverse()) {
          const { access, requests } = asked(way, operation);
          // The first slice warms the node's compiler and is not counted.
          const limits = { connections: CONNECTIONS, requests: round === 0 ? WARM_REQUESTS : settings.requests, access };
          const slice = await runSlice(bench, way, { ...operation, requests }, limits);
          if (round > 0) slices.get(way)?.push(slice);
        }
      }
      for (const way of ways) rows.push(rowOf(operation, way, slices.get(way) as Slice[], slices.get(ways[0] as Way) as Slice[]));
    }
    return rows;
  } finally {
    load.end();
    await Promise.all(nodes.map((node) => node.end('SIGTERM')));
  }
}

/** The first is a node without keys. started: gets each node at once. */
async function waysIn(folder: string, dataset: Dataset, started: RunningNode[]): Promise<Way[]> {
  const authority = new Authority('authority of the benchmark', Date.now());
  const { cert, key } = authority.sign({ name: 'node', hosts: ['127.0.0.1'] });
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const keys = { SERVICE__SERVICE__API_KEY: KEY, SERVICE__SERVICE__JWT_RBAC: 'true' };
  const audit = { ...keys, SERVICE__AUDIT__ENABLED: 'true', SERVICE__AUDIT__DIR: join(folder, 'audit-log') };
  const tls = {
    SERVICE__SERVICE__ENABLE_TLS: 'true',
    SERVICE__TLS__CERT: file('cert.pem', cert),
    SERVICE__TLS__KEY: file('key.pem', key),
  };
  const { cert: ca } = authority;
  const nodeWith = async (name: string, environment: Record<string, string>, withTls = false): Promise<RunningNode> => {
    const own = join(folder, name);
    mkdirSync(own);
    const node = await startNodeProcess({ folder: own, environment, ...(withTls ? { tls: { ca } } : {}) });
    started.push(node);
    const headers = 'SERVICE__SERVICE__API_KEY' in environment ? { 'api-key': KEY } : {};
    const address = { host: '127.0.0.1', port: node.port, prefix: '', headers, tls: withTls ? { ca } : null, silenceMs: 0 };
    await fill(new RestClient(address as NodeAddress), dataset);
    return node;
  };
  const plain = await nodeWith('plain', {});
  const keyed = await nodeWith('keyed', keys);
  const audited = await nodeWith('audited', audit);
  const secure = await nodeWith('secure', tls, true);
  return [
    { name: 'no key', node: plain },
    { name: 'key', node: keyed, credential: KEY },
    { name: 'token (r)', node: keyed, credential: signedToken({ access: 'r' }, KEY) },
    { name: 'token of one collection', node: keyed, credential: signedToken({ access: [{ collection: COLLECTION, access: 'r' }] }, KEY) },
    {
      name: 'token of a tenant',
      node: keyed,
      credential: signedToken({ access: [{ collection: COLLECTION, access: 'rw', tenant: TENANT }] }, KEY),
    },
    { name: 'key and audit log', node: audited, credential: KEY },
    { name: 'TLS, no key', node: secure, ca },
  ];
}

/** Every point is the tenant's: what its token costs is the check of each point. */
async function fill(client: RestClient, dataset: Dataset): Promise<void> {
  const { count, dim, distance, payloads, vectors } = dataset;
  await client.result('PUT', `/collections/${COLLECTION}`, { vectors: { size: dim, distance } });
  for (const field_name of ['category', TENANT.key]) {
    await client.result('PUT', `/collections/${COLLECTION}/index?wait=true`, { field_name, field_schema: 'keyword' });
  }
  for (let from = 0; from < count; from += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => {
      const id = from + at;
      const vector = Array.from(vectors.subarray(id * dim, (id + 1) * dim));
      return { id, vector, payload: { ...(payloads[id] as object), [TENANT.key]: TENANT.value } };
    });
    await client.result('PUT', `/collections/${COLLECTION}/points?wait=true`, { points });
  }
  client.close();
}

/** The requests of an operation as this way sends them. */
function asked(
  { ca, credential }: Way,
  { protocol, requests }: { readonly protocol: 'rest' | 'grpc'; readonly requests: readonly Buffer[] },
) {
  const access: LoadAccess = {
    ...(ca === undefined ? {} : { ca }),
    ...(credential === undefined || protocol === 'rest' ? {} : { metadata: ['api-key', credential] }),
  };
  if (protocol === 'grpc' || credential === undefined) return { access, requests };
  const header = Buffer.from(`\r\napi-key: ${credential}`, 'latin1');
  const withKey = requests.map((request) => {
    const end = request.indexOf('\r\n\r\n');
    return Buffer.concat([request.subarray(0, end), header, request.subarray(end)]);
  });
  return { access, requests: withKey };
}

function rowOf(
  { name, protocol }: { readonly name: string; readonly protocol: 'rest' | 'grpc' },
  way: Way,
  slices: readonly Slice[],
  without: readonly Slice[],
): AccessCostRow {
  const cpuUs = ({ units, use }: Slice): number => use.cpuUs / units;
  const pairs = slices.map((slice, at) => [cpuUs(slice), cpuUs(without[at] as Slice)] as const);
  return {
    protocol,
    operation: name,
    access: way.name,
    figures: sliceFigures(slices),
    ratio: median(pairs.map(([own, other]) => own / other)),
    addedUs: median(pairs.map(([own, other]) => own - other)),
  };
}
