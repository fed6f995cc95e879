import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { resolveSettings, SettingsError } from '../../../ops/config/resolve.js';
import type { ModuleLog } from '../../../ops/log.js';
import { Authority, type MadeCertificate } from '../../../ops/tls/authority.js';
import { openTls, type TlsMaterial } from '../../../ops/tls/keeper.js';

const folder = mkdtempSync(join(tmpdir(), 'troupe-keeper-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const authority = new Authority('authority', Date.now());
const TTL_SEC = 60;

function write({ cert, key }: Partial<MadeCertificate>): void {
  for (const [name, text] of [
    ['cert', cert],
    ['key', key],
  ] as const) {
    if (text === undefined) continue;
    // As tools do that replace a certificate.
    writeFileSync(join(folder, `${name}.new`), text);
    renameSync(join(folder, `${name}.new`), join(folder, `${name}.pem`));
  }
}

function openKeeper(own: object = {}) {
  const clock = { nowMs: 0, dateMs: Date.now, monotonicMs: () => clock.nowMs };
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), cert_ttl: TTL_SEC, ...own };
  const keeper = openTls(resolveSettings([{ kind: 'tree', name: 'test', tree: { service: { enable_tls: true }, tls } }]).settings, clock);
  assert.ok(keeper !== null);
  const lines: string[] = [];
  const changes: TlsMaterial[] = [];
  const note = (level: string) => (message: string, facts?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(facts ?? {})}`);
  const log = {
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
    debug: note('debug'),
    trace: note('trace'),
    enabled: () => true,
  };
  keeper.watch(log as ModuleLog, (material) => changes.push(material));
  keeper.stop();
  return { keeper, clock, lines, changes, shown: () => changes.map(({ door }) => door?.cert), look: () => keeper.look(log as ModuleLog) };
}

test('a start without its files fails with the keys of the settings', () => {
  assert.throws(
    () => openKeeper({ cert: join(folder, 'none') }),
    (error: Error) => error instanceof SettingsError && error.problems.length === 2,
  );
});

test('changed files are shown, with other keys for sessions; files that are the same are not told', async () => {
  write(authority.sign({ name: 'first' }));
  const { changes, keeper, look, shown } = openKeeper();
  await look();
  await look();
  assert.deepEqual(shown(), []);
  const before = keeper.material.door;
  const second = authority.sign({ name: 'second' });
  write(second);
  await look();
  assert.deepEqual(shown(), [second.cert]);
  assert.notDeepEqual(changes[0]?.door?.ticketKeys, before?.ticketKeys);
  write(second);
  await look();
  assert.equal(shown().length, 1);
});

test('files that do not fit together leave the old ones in use, and are told once, when the next look finds them so, too', async () => {
  const first = authority.sign({ name: 'first' });
  const second = authority.sign({ name: 'second' });
  write(first);
  const { lines, look, shown } = openKeeper();
  // Between two looks, only one of the files is replaced.
  write({ cert: second.cert });
  await look();
  assert.deepEqual([lines, shown()], [[], []]);
  await look();
  await look();
  assert.equal(lines.length, 1);
  assert.match(lines[0] as string, /^error the changed files of TLS cannot be used.*is not the private key of the certificate/);
  write({ key: second.key });
  await look();
  assert.deepEqual(shown(), [second.cert]);
  assert.match(lines[1] as string, /^info new connections get the changed certificate .*"subject":"CN=second"/);
  rmSync(join(folder, 'key.pem'));
  await look();
  await look();
  assert.match(lines[2] as string, /tls\.key: cannot read/);
  assert.equal(shown().length, 1);
});

test('files are read each cert_ttl, also where the system does not tell that they have changed', async () => {
  const { cert, key } = authority.sign({ name: 'first' });
  const path = join(folder, 'cert.pem');
  const date = new Date(1_700_000_000_000);
  const writeInPlace = (text: string): void => {
    writeFileSync(path, text);
    utimesSync(path, date, date);
  };
  write({ key });
  writeInPlace(`${cert}# a\n`);
  const { clock, look, shown } = openKeeper();
  await look();
  writeInPlace(`${cert}# b\n`);
  await look();
  assert.deepEqual(shown(), []);
  clock.nowMs = 1000 * TTL_SEC;
  await look();
  assert.deepEqual(shown(), [`${cert}# b\n`]);
});
