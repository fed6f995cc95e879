/**
 * The package as others get it: packed, unpacked into an empty folder beside the packages that it declares and no others, and used. npm itself would
 * fetch those from a registry, so they are linked from this checkout.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startNodeProcess } from '../../ops/node-process.js';
import { temporaryFolder } from './support.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const PROGRAM = `
import { Troupe, type Filter, type Point, type ScoredPoint } from 'troupe';

interface City { name: string; people?: number }

await using troupe = await Troupe.open({ path: ':memory:' });
await troupe.ensureCollection('cities', { vectors: { size: 2, distance: 'Dot' } });
const points: Point<City>[] = [{ id: 1, vector: [1, 0], payload: { name: 'Berlin' } }, { id: 2, vector: new Float32Array([0, 1]), payload: { name: 'London' } }];
await troupe.upsert('cities', { points });
const filter: Filter = { must_not: [{ key: 'name', match: { value: 'London' } }] };
const { points: found } = await troupe.query<City>('cities', { query: [1, 1], filter, with_payload: true });
const best: ScoredPoint<City> | undefined = found[0];
const name: string | undefined = best?.payload?.name;
const doors = await troupe.listen();
const answer = await fetch(doors.url + '/collections');
console.log(name, found.length, answer.status);
`;

function run(command: string, args: readonly string[], folder: string) {
  const { status, stderr, stdout } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  return stdout;
}

test('the packed package has what runs and no more, and is installed, typed, searched, asked and served in an empty folder', async (t) => {
  const folder = await temporaryFolder(t);
  const printed = run(process.execPath, [join(ROOT, 'ops', 'build-package.mjs'), folder], ROOT);
  const file = /^(\S+\.tgz) \(\d+ bytes; (\d+) unpacked\)\n$/.exec(printed) ?? assert.fail(printed);
  assert.ok(Number(file[2]) < 3_200_000, printed);

  const modules = join(folder, 'node_modules');
  const own = join(modules, 'troupe');
  mkdirSync(own, { recursive: true });
  run('tar', ['-xzf', file[1] as string, '--strip-components=1', '-C', own], folder);
  const names = readdirSync(own, { recursive: true, encoding: 'utf8' });
  assert.deepEqual(
    names.filter((name) => /\.(map|ts|tsx|mjs)$|(^|\/)(test|bench|demo|bundle)(\/|$)/.test(name) && !name.endsWith('.d.ts')),
    [],
  );
  const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
  assert.equal(manifest.devDependencies ?? manifest.scripts ?? manifest.private, undefined);
  for (const name of [...Object.keys(manifest.dependencies ?? {}), ...Object.keys(manifest.optionalDependencies ?? {}), '@types/node']) {
    if (!existsSync(join(ROOT, 'node_modules', name))) continue;
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  const launcher = join(modules, '.bin', 'troupe');
  mkdirSync(dirname(launcher));
  symlinkSync(join('..', 'troupe', manifest.bin?.troupe ?? assert.fail()), launcher);

  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  const options = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,esnext.disposable', '--types', 'node'];
  run(process.execPath, [join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'), ...options, 'program.ts'], folder);
  assert.equal(run(process.execPath, ['program.js'], folder), 'Berlin 1 200\n');

  assert.match(run(launcher, ['--version'], folder), /^troupe \d+\.\d+\.\d+\n$/);
  const node = await startNodeProcess({ folder, program: join(own, 'ops', 'launch.sh') });
  t.after(() => node.end('SIGKILL'));
  assert.equal((await fetch(`${node.url}/dashboard`)).status, 200);
  assert.equal(run(launcher, ['collections', 'list', '--names', '--url', node.url], folder), '');
});
