/** The manifests for Kubernetes, compared with the ports, settings and paths that a node has. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { ROUTES } from '../../http/routes.js';
import { parseCommandLine } from '../../ops/cli.js';
import { resolveSettings } from '../../ops/config/resolve.js';
import { temporaryFolder } from '../process/support.js';

const FILE = fileURLToPath(new URL('../../../ops/kubernetes/troupe.yaml', import.meta.url));

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // The kinds differ; each test says what it expects.
  readonly spec: Readonly<Record<string, unknown>>;
}

const manifests = parseAllDocuments(readFileSync(FILE, 'utf8')).map((document) => {
  assert.deepEqual(document.errors, []);
  return document.toJS() as Manifest;
});

function manifest<Spec>(kind: string, name = 'troupe'): Spec {
  return (manifests.find((one) => one.kind === kind && one.metadata.name === name)?.spec ?? assert.fail(`${kind} ${name}`)) as Spec;
}

interface StatefulSet {
  readonly serviceName: string;
  readonly replicas: number;
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly template: {
    readonly metadata: { readonly labels: Readonly<Record<string, string>>; readonly annotations: Readonly<Record<string, string>> };
    readonly spec: {
      readonly terminationGracePeriodSeconds: number;
      readonly securityContext: Readonly<Record<string, unknown>>;
      readonly containers: readonly Container[];
      readonly volumes: readonly { readonly name: string }[];
    };
  };
  readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
}

const set = manifest<StatefulSet>('StatefulSet');
const pod = set.template.spec;
const container = pod.containers[0] ?? assert.fail();

test('variables are settings, ports are those that they give, and data lie in the volumes', () => {
  const variables = Object.fromEntries(
    container.env.filter(({ name }) => name.startsWith('SERVICE__')).map(({ name, value }) => [name, value ?? 'a-key']),
  );
  const { settings, warnings } = resolveSettings([{ kind: 'environment', variables }]);
  assert.deepEqual(warnings, []);
  assert.equal(settings.cluster.enabled, true);
  const ports = Object.fromEntries(container.ports.map(({ containerPort, name }) => [name, containerPort]));
  assert.deepEqual(ports, { rest: settings.service.http_port, grpc: settings.service.grpc_port, peers: settings.cluster.p2p.port });
  const mounted = container.volumeMounts.map(({ mountPath }) => mountPath);
  assert.deepEqual(mounted, [settings.storage.storage_path, settings.storage.snapshots_path, '/tmp']);
  assert.ok(settings.audit.dir.startsWith(`${settings.storage.storage_path}/`));
  const volumes = [...set.volumeClaimTemplates.map(({ metadata }) => metadata.name), ...pod.volumes.map(({ name }) => name)];
  assert.deepEqual(container.volumeMounts.map(({ name }) => name).sort(), volumes.sort());
  const key = container.env.find(({ name }) => name === 'SERVICE__SERVICE__API_KEY');
  assert.ok(key?.valueFrom !== undefined && key.value === undefined, 'no key is in the manifest');
});

test('services, probes and policies speak of ports and paths that there are, and every selector finds the nodes', () => {
  const labels = set.template.metadata.labels;
  const paths = new Set(ROUTES.filter(({ access }) => access === 'open').map(({ path }) => path));
  for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    assert.ok(paths.has(httpGet.path), `${httpGet.path} is asked without a key`);
    assert.equal(httpGet.port, 'rest');
  }
  assert.equal(container.readinessProbe.httpGet.path, '/readyz');
  assert.notEqual(container.livenessProbe.httpGet.path, '/readyz', 'a node that is not ready is not started anew');
  for (const service of ['troupe', set.serviceName]) {
    const { ports, selector } = manifest<{ ports: { targetPort: string; port: number }[]; selector: object }>('Service', service);
    assert.deepEqual(selector, labels);
    for (const { port, targetPort } of ports) {
      assert.equal(container.ports.find(({ name }) => name === targetPort)?.containerPort, port);
    }
  }
  assert.deepEqual(
    manifest<{ ports: { targetPort: string }[] }>('Service').ports.map(({ targetPort }) => targetPort),
    ['rest', 'grpc'],
    'clients do not reach the internal port',
  );
  const { clusterIP, publishNotReadyAddresses } = manifest<Record<string, unknown>>('Service', set.serviceName);
  assert.deepEqual([clusterIP, publishNotReadyAddresses], ['None', true]);
  const budget = manifest<{ maxUnavailable: number; selector: { matchLabels: object } }>('PodDisruptionBudget');
  assert.deepEqual([budget.maxUnavailable, budget.selector.matchLabels, set.selector.matchLabels], [1, labels, labels]);
  assert.ok(set.replicas - budget.maxUnavailable > set.replicas / 2, 'a majority stays');
  type Rule = { ports?: { port: string }[]; from?: { podSelector: { matchLabels: object } }[] };
  const policy = manifest<{ podSelector: { matchLabels: object }; ingress: Rule[] }>('NetworkPolicy');
  assert.deepEqual(policy.podSelector.matchLabels, labels);
  const forClients = { ports: [{ port: 'rest' }, { port: 'grpc' }] };
  assert.deepEqual(policy.ingress, [forClients, { from: [{ podSelector: { matchLabels: labels } }] }], 'nodes reach all ports of nodes');
  assert.deepEqual([set.template.metadata.annotations['prometheus.io/path'], paths.has('/metrics')], ['/metrics', false]);
});

test('a node runs as a user who is not root, on a root that cannot be written, without rights, and ends in order', () => {
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const dockerfile = readFileSync(join(FILE, '..', '..', 'docker', 'Dockerfile'), 'utf8');
  const user = Number(/^USER (\d+):\d+$/m.exec(dockerfile)?.[1]);
  const { fsGroup, runAsGroup, runAsNonRoot, runAsUser } = pod.securityContext;
  assert.deepEqual([runAsNonRoot, runAsUser, runAsGroup, fsGroup], [true, user, user, user]);
  assert.ok(pod.terminationGracePeriodSeconds > 30, 'longer than running requests may take');
});

test('the first node founds the cluster once, and every other start joins it', async (t) => {
  const folder = await temporaryFolder(t);
  const script = (container.args[0] ?? assert.fail()).replaceAll('/opt/troupe/ops/launch.sh', "printf '%s\\n'");
  const started = (name: string, variables: Record<string, string> = {}) => {
    const environment = { PATH: process.env.PATH, POD_NAME: name, SERVICE__STORAGE__STORAGE_PATH: folder, ...variables };
    const { status, stdout } = spawnSync('/bin/sh', ['-c', script], { env: environment, encoding: 'utf8' });
    assert.equal(status, 0);
    const command = parseCommandLine(stdout.trim().split('\n'), '0.0.0');
    return command.kind === 'serve' ? command.cluster : assert.fail(stdout);
  };
  assert.deepEqual(started('troupe-0'), { uri: 'http://troupe-0.troupe-nodes:6335', bootstrap: null, reinit: false });
  assert.deepEqual(started('troupe-2'), {
    uri: 'http://troupe-2.troupe-nodes:6335',
    bootstrap: 'http://troupe-0.troupe-nodes:6335',
    reinit: false,
  });
  assert.equal(started('troupe-0', { TROUPE_FOUND: 'no' }).bootstrap, 'http://troupe-1.troupe-nodes:6335');
  mkdirSync(join(folder, 'consensus'));
  assert.equal(started('troupe-0').bootstrap, 'http://troupe-1.troupe-nodes:6335');
});
