/** Makes an authority and certificates signed by it, for tests, benchmarks and clusters on one machine. Source: RFC 5280. */

import { isIP } from 'node:net';
import { crypto } from '../../protocols/late-modules.js';

/** Texts as PEM. */
export interface MadeCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface Wish {
  /** Common name of the subject. */
  readonly name: string;
  /** Names and addresses of hosts. */
  readonly hosts?: readonly string[];
  /** What it may be used for; left out: servers and clients. */
  readonly uses?: readonly ('server' | 'client')[];
  /** Left out: from a day ago for ten years. Milliseconds since the epoch. */
  readonly validFromMs?: number;
  readonly validToMs?: number;
}

export class Authority implements MadeCertificate {
  readonly cert: string;
  readonly key: string;
  readonly #keys = newKeys();
  readonly #name: Buffer;

  constructor(
    name: string,
    private readonly nowMs: number,
  ) {
    this.#name = nameOf(name);
    const extensions = [
      extension(BASIC_CONSTRAINTS, sequence(Buffer.of(BOOLEAN, 1, 0xff)), true),
      // Signs certificates and lists of revoked ones.
      extension(KEY_USAGE, tagged(BIT_STRING, Buffer.of(1, 0x06)), true),
    ];
    const { publicKey, privateKey } = this.#keys;
    this.cert = this.#signed(this.#name, publicKey, extensions, {});
    this.key = pemOfKey(privateKey);
  }

  sign(wish: Wish): MadeCertificate {
    const { hosts = [], name, uses = ['server', 'client'] } = wish;
    const { privateKey, publicKey } = newKeys();
    const extensions = [
      extension(BASIC_CONSTRAINTS, sequence(), true),
      // Signs handshakes.
      extension(KEY_USAGE, tagged(BIT_STRING, Buffer.of(7, 0x80)), true),
      extension(EXTENDED_KEY_USAGE, sequence(...uses.map((use) => (use === 'server' ? SERVER_AUTH : CLIENT_AUTH)))),
      ...(hosts.length === 0 ? [] : [extension(SUBJECT_ALT_NAME, sequence(...hosts.map(hostName)))]),
    ];
    return { cert: this.#signed(nameOf(name), publicKey, extensions, wish), key: pemOfKey(privateKey) };
  }

  #signed(subject: Buffer, publicKey: KeyObject, extensions: readonly Buffer[], { validFromMs, validToMs }: Partial<Wish>): string {
    const from = validFromMs ?? this.nowMs - DAY_MS;
    const to = validToMs ?? this.nowMs + 3650 * DAY_MS;
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const identifiers = [
      extension(SUBJECT_KEY_ID, tagged(OCTET_STRING, keyId(spki))),
      extension(AUTHORITY_KEY_ID, sequence(tagged(0x80, keyId(this.#keys.publicKey.export({ type: 'spki', format: 'der' }))))),
    ];
    const serial = crypto().randomBytes(16);
    // Positive, and without a zero at its beginning.
    serial[0] = 0x40 | ((serial[0] as number) & 0x3f);
    const content = sequence(
      tagged(0xa0, tagged(INTEGER, Buffer.of(2))),
      tagged(INTEGER, serial),
      sequence(ECDSA_WITH_SHA256),
      this.#name,
      sequence(time(from), time(to)),
      subject,
      spki,
      tagged(0xa3, sequence(...extensions, ...identifiers)),
    );
    const signature = crypto().sign('sha256', content, this.#keys.privateKey);
    return pem('CERTIFICATE', sequence(content, sequence(ECDSA_WITH_SHA256), tagged(BIT_STRING, Buffer.concat([Buffer.of(0), signature]))));
  }
}

type KeyObject = import('node:crypto').KeyObject;

const DAY_MS = 86_400_000;

/** Tags of DER. */
const BOOLEAN = 0x01;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;

const COMMON_NAME = objectId('550403');
const ECDSA_WITH_SHA256 = objectId('2a8648ce3d040302');
const BASIC_CONSTRAINTS = objectId('551d13');
const KEY_USAGE = objectId('551d0f');
const EXTENDED_KEY_USAGE = objectId('551d25');
const SUBJECT_ALT_NAME = objectId('551d11');
const SUBJECT_KEY_ID = objectId('551d0e');
const AUTHORITY_KEY_ID = objectId('551d23');
const SERVER_AUTH = objectId('2b06010505070301');
const CLIENT_AUTH = objectId('2b06010505070302');

function newKeys() {
  return crypto().generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** Content up to 65,535 bytes. */
function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(SEQUENCE, Buffer.concat(parts));
}

function objectId(hex: string): Buffer {
  return tagged(OBJECT_ID, Buffer.from(hex, 'hex'));
}

function nameOf(commonName: string): Buffer {
  return sequence(tagged(SET, sequence(COMMON_NAME, tagged(UTF8_STRING, Buffer.from(commonName)))));
}

/** Years from 1950 to 2049. */
function time(dateMs: number): Buffer {
  const digits = new Date(dateMs).toISOString().replace(/\D/g, '').slice(2, 14);
  return tagged(UTC_TIME, Buffer.from(`${digits}Z`));
}

function extension(id: Buffer, value: Buffer, isCritical = false): Buffer {
  return sequence(id, ...(isCritical ? [Buffer.of(BOOLEAN, 1, 0xff)] : []), tagged(OCTET_STRING, value));
}

function hostName(host: string): Buffer {
  const kind = isIP(host);
  if (kind === 0) return tagged(0x82, Buffer.from(host, 'latin1'));
  return tagged(0x87, kind === 4 ? Buffer.from(host.split('.').map(Number)) : wideAddress(host));
}

/** IPv6, without the form that ends like IPv4. */
function wideAddress(host: string): Buffer {
  const [left = '', right = ''] = host.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const missing = 8 - groups(left).length - groups(right).length;
  const all = [...groups(left), ...Array<string>(missing).fill('0'), ...groups(right)];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function keyId(spki: Buffer): Buffer {
  return crypto().createHash('sha1').update(spki).digest();
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function pem(kind: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${kind}-----`, ...lines, `-----END ${kind}-----`, ''].join('\n');
}
