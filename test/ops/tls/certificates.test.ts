import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { resolveSettings } from '../../../ops/config/resolve.js';
import { Authority } from '../../../ops/tls/authority.js';
import { readCertificates, tlsProblems, tlsWanted } from '../../../ops/tls/certificates.js';

const NOW_MS = Date.parse('2030-06-01T00:00:00Z');
const DAY_MS = 86_400_000;
const folder = mkdtempSync(join(tmpdir(), 'troupe-tls-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const authority = new Authority('authority', NOW_MS);
const sound = authority.sign({ name: 'node', hosts: ['node'] });
const other = authority.sign({ name: 'other' });

interface Texts {
  readonly cert?: string | null;
  readonly key?: string | null;
  readonly ca?: string | null;
}

/** Settings whose files have these texts; null: there is no such file. */
function settingsOf(texts: Texts, on: object = { service: { enable_tls: true } }) {
  const { ca = authority.cert, cert = sound.cert, key = sound.key } = texts;
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), ca_cert: join(folder, 'ca.pem') };
  for (const [path, text] of [
    [paths.cert, cert],
    [paths.key, key],
    [paths.ca_cert, ca],
  ] as const) {
    rmSync(path, { force: true });
    if (text !== null) writeFileSync(path, text);
  }
  return resolveSettings([{ kind: 'tree', name: 'test', tree: { ...on, tls: paths } }]).settings;
}

function read(texts: Texts, on?: object) {
  const settings = settingsOf(texts, on);
  const wanted = tlsWanted(settings);
  assert.ok(wanted !== null);
  return readCertificates(settings, wanted, NOW_MS);
}

const PEERS = { cluster: { enabled: true, p2p: { enable_tls: true } } };
const CLIENTS = { service: { enable_tls: true, verify_https_client_certificate: true } };

test('certificates that fit together are read, with whom they are of and until when', () => {
  const { files, problems, subject, validTo, warnings } = read({});
  assert.deepEqual([problems, warnings], [[], []]);
  assert.deepEqual(files, { ...sound, ca: null });
  assert.equal(subject, 'CN=node');
  assert.match(validTo, /2040/);
  assert.deepEqual(read({}, PEERS).files, { ...sound, ca: authority.cert });
});

test('half-configured TLS is refused by the key of the setting', () => {
  const cases: [Texts, object | undefined, RegExp][] = [
    [{ cert: null }, undefined, /^tls\.cert: cannot read .*cert\.pem, which service\.enable_tls needs: there is no such file$/],
    [{ key: null }, PEERS, /^tls\.key: cannot read .*, which cluster\.p2p\.enable_tls needs: /],
    [{ ca: null }, PEERS, /^tls\.ca_cert: cannot read .*, which cluster\.p2p\.enable_tls needs: /],
    [{ ca: null }, CLIENTS, /^tls\.ca_cert: cannot read .*, which service\.verify_https_client_certificate needs: /],
    [{ cert: 'text' }, undefined, /^tls\.cert: .*cert\.pem has no certificate as PEM: /],
    [{ key: sound.cert }, undefined, /^tls\.key: .*key\.pem has no private key as PEM, without a passphrase: /],
    [{ ca: 'text' }, CLIENTS, /^tls\.ca_cert: .*ca\.pem has no certificate as PEM: /],
    [{ key: other.key }, undefined, /^tls\.key: .*key\.pem is not the private key of the certificate in .*cert\.pem \(tls\.cert\)$/],
  ];
  for (const [texts, on, problem] of cases) {
    const { files, problems } = read(texts, on);
    assert.equal(files, null);
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.match(problems[0] as string, problem);
  }
  assert.equal(read({ cert: null, key: null, ca: null }, PEERS).problems.length, 3);
  const alone = settingsOf({}, { service: { verify_https_client_certificate: true } });
  assert.match(tlsProblems(alone)[0] as string, /^service\.verify_https_client_certificate: needs service\.enable_tls/);
});

test('files that nothing asks for are not looked at', () => {
  const nothing = { cert: null, key: null, ca: null };
  assert.equal(tlsWanted(settingsOf(nothing, {})), null);
  assert.equal(tlsWanted(settingsOf(nothing, { cluster: { enabled: false, p2p: { enable_tls: true } } })), null);
  assert.deepEqual(read({ ca: null }).problems, []);
});

test('a certificate that has expired or is not valid yet is a warning', () => {
  const expired = authority.sign({ name: 'node', validFromMs: NOW_MS - 2 * DAY_MS, validToMs: NOW_MS - DAY_MS });
  const early = authority.sign({ name: 'node', validFromMs: NOW_MS + DAY_MS });
  assert.match(read(expired).warnings[0] as string, /^tls\.cert: .* has expired \(May 31 /);
  assert.match(read(early).warnings[0] as string, /^tls\.cert: .* is not valid yet \(before Jun {2}2 /);
  assert.notEqual(read(expired).files, null);
});
