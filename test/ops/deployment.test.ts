/** What is shipped for containers and for systemd, as far as it can be checked without either. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { parseCommandLine } from '../../ops/cli.js';
import { resolveSettings } from '../../ops/config/resolve.js';
import { temporaryFolder } from '../process/support.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DOCKER = join(ROOT, 'ops', 'docker');
const COMPOSE_FILES = ['compose.yaml', 'compose-cluster.yaml'];
/** Where the image has Troupe. */
const IMAGE_ROOT = '/opt/troupe/';

interface Service {
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  readonly read_only: boolean;
  readonly tmpfs: readonly string[];
  readonly cap_drop: readonly string[];
  readonly stop_grace_period: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
}

const read = (...path: string[]): string => readFileSync(join(ROOT, 'ops', ...path), 'utf8');
const composeOf = (file: string): Compose => parse(read('docker', file), { merge: true }) as Compose;

/** The settings that variables give; fails for one that no setting has. */
function settingsOf(variables: Readonly<Record<string, string>>) {
  const { settings, warnings } = resolveSettings([{ kind: 'environment', variables }]);
  assert.deepEqual(warnings, []);
  return settings;
}

/** `NAME=value` of the lines with that word. */
function assignments(text: string, pattern: RegExp): Record<string, string> {
  return Object.fromEntries([...text.matchAll(pattern)].map(([, name = '', value = '']) => [name, value]));
}

/** Whether a path below the root is there; one folder of it may end in a star. */
function isThere(path: string): boolean {
  const [before = '', after] = path.split('*');
  if (after === undefined) return existsSync(join(ROOT, path));
  const start = before.slice(before.lastIndexOf('/') + 1);
  const names = readdirSync(join(ROOT, dirname(before))).filter((name) => name.startsWith(start));
  return names.some((name) => existsSync(join(ROOT, dirname(before), name, after)));
}

/** Instructions of a Dockerfile, lines that go on joined. */
function instructions(): string[] {
  return read('docker', 'Dockerfile')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '');
}

test('each variable that the image, the compose files and the unit set is a setting, and data stay in their volumes', () => {
  const image = settingsOf(assignments(instructions().join('\n'), /(SERVICE__\w+)=(\S+)/g));
  assert.deepEqual(
    [image.storage.storage_path, image.storage.snapshots_path, image.audit.dir],
    ['/troupe/storage', '/troupe/snapshots', '/troupe/storage/audit'],
  );
  const unit = settingsOf(assignments(read('systemd', 'troupe.service'), /^Environment=(SERVICE__\w+)=(\S+)$/gm));
  for (const path of [unit.storage.storage_path, unit.storage.snapshots_path, unit.audit.dir]) assert.match(path, /^\/var\/lib\/troupe\//);
  for (const file of COMPOSE_FILES) {
    for (const { environment } of Object.values(composeOf(file).services)) settingsOf(environment);
  }
});

test('nodes of the compose files are started with options that there are, without rights, and with a key', () => {
  for (const file of COMPOSE_FILES) {
    const { services, volumes } = composeOf(file);
    const used: string[] = [];
    for (const [name, service] of Object.entries(services)) {
      const command = parseCommandLine(service.command ?? [], '0.0.0');
      assert.equal(command.kind, 'serve', name);
      assert.match(service.environment.SERVICE__SERVICE__API_KEY as string, /^\$\{TROUPE_API_KEY:\?/);
      assert.deepEqual([service.read_only, service.tmpfs, service.cap_drop], [true, ['/tmp'], ['ALL']], name);
      assert.ok(Number.parseInt(service.stop_grace_period, 10) > 30, 'longer than running requests may take');
      assert.ok(
        service.ports.every((port) => !port.endsWith(':6335')),
        'the internal port is for peers alone',
      );
      for (const volume of service.volumes) {
        const [source = '', target = ''] = volume.split(':');
        used.push(source);
        assert.ok(['/troupe/storage', '/troupe/snapshots'].includes(target), volume);
      }
      if (service.build !== undefined) assert.ok(existsSync(resolve(DOCKER, service.build.context, service.build.dockerfile)));
    }
    assert.deepEqual(used.sort(), Object.keys(volumes).sort(), 'each node has volumes of its own');
  }
  const { services } = composeOf('compose-cluster.yaml');
  const addresses = Object.values(services).map(({ command }) => {
    const parsed = parseCommandLine(command ?? [], '0.0.0');
    assert.equal(parsed.kind, 'serve');
    return parsed.kind === 'serve' ? parsed.cluster : assert.fail();
  });
  assert.deepEqual(
    addresses.map(({ uri }) => uri),
    Object.keys(services).map((name) => `http://${name}:6335`),
  );
  assert.deepEqual(
    addresses.map(({ bootstrap }) => bootstrap),
    [null, 'http://node1:6335', 'http://node1:6335'],
  );
});

test('what the Dockerfile copies is there, and it runs as a user who is not root, by number', () => {
  const lines = instructions();
  for (const line of lines.filter((one) => one.startsWith('COPY'))) {
    const paths = line
      .split(' ')
      .slice(1, -1)
      .filter((word) => !word.startsWith('--'));
    for (const path of paths) {
      const own = path.startsWith(IMAGE_ROOT) ? path.slice(IMAGE_ROOT.length) : path;
      assert.ok(existsSync(join(ROOT, own)), line);
    }
  }
  for (const [path = ''] of lines.join('\n').matchAll(/\/opt\/troupe\/[\w./*-]+/g)) {
    if (path.includes('.cache')) continue;
    assert.ok(isThere(path.slice(IMAGE_ROOT.length)), path);
  }
  const user = lines.filter((line) => line.startsWith('USER')).at(-1);
  assert.match(user as string, /^USER [1-9]\d*:[1-9]\d*$/);
  const at = (word: string): number => lines.findIndex((line) => line.startsWith(word));
  assert.ok(at('ENTRYPOINT') > at('FROM debian'));
  assert.match(lines[at('ENTRYPOINT')] as string, /^ENTRYPOINT \["\/opt\/troupe\/ops\/launch\.sh"\]$/);
});

test('the unit starts the launcher, which is there, and no option of it is misspelt', () => {
  const unit = read('systemd', 'troupe.service');
  assert.match(unit, /^ExecStart=\/opt\/troupe\/ops\/launch\.sh$/m);
  assert.match(unit, /^User=troupe$/m);
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
  assert.ok(seconds > 30, 'longer than running requests may take');
  const verify = spawnSync('systemd-analyze', ['verify', join(ROOT, 'ops', 'systemd', 'troupe.service')], { encoding: 'utf8' });
  // The program is not where the unit expects it, on this machine.
  const complaints = (verify.stderr ?? '')
    .split('\n')
    .filter((line) => line.includes('troupe.service') && !line.includes('is not executable'));
  assert.deepEqual(complaints, []);
});

test('a start while the image is built leaves compiled code for every container, and no data', async (t) => {
  const folder = await temporaryFolder(t);
  const [cache, temporary] = [join(folder, 'cache'), join(folder, 'tmp')];
  mkdirSync(temporary);
  const environment = { ...process.env, NODE_COMPILE_CACHE: cache, TMPDIR: temporary };
  const { status, stderr } = spawnSync(process.execPath, [join(DOCKER, 'warm.mjs')], { env: environment, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.ok(readdirSync(cache).length > 0);
  assert.deepEqual(readdirSync(temporary), []);
});
