import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { ArchiveError, type ArchiveProblem } from '../../../storage/archive/archive-error.js';
import { unpackArchive } from '../../../storage/archive/unpack.js';
import { verifyArchive } from '../../../storage/archive/verify.js';
import { encodeChecked } from '../../../storage/disk/checked-file.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import {
  archiveOf,
  blockOf,
  bytesOf,
  checksumsMember,
  contentOf,
  END,
  folderFor,
  type HandMember,
  manifestMember,
  manifestOf,
  membersOf,
  pattern,
  ROOM,
  SMALL,
} from './archives.js';
import { bzip2, gzip, zstd } from './compressed.js';

interface Hostile {
  readonly bytes: Buffer;
  readonly problem: ArchiveProblem;
  readonly says: RegExp;
  readonly limits?: { readonly bytesMax?: number; readonly filesMax?: number; readonly manifestBytesMax?: number };
}

before(initChecksum);

const SHARD = 'collections/0/shards/0';
/** Members of `membersOf(SMALL)` by their places. */
const [MANIFEST, DATA, ROWS, , CHECKSUMS] = [0, 1, 2, 3, 4] as const;
/** Is nowhere before or after. */
const ABSOLUTE = '/tmp/archive-test-never-made';

const CASES: Readonly<Record<string, () => Hostile>> = {
  // ---------------------------------------------------------------- names
  'an absolute name': () => renamed(ABSOLUTE, /absolute name/),
  'an absolute name behind a folder of the header': () => inFolder('/tmp', 'archive-test-never-made', /absolute name/),
  'a name with a drive': () => renamed('C:/evil', /absolute name/),
  'a name that climbs out': () => renamed('../../evil', /leads out of its folder/),
  'a name that climbs out in its midst': () => renamed(`${SHARD}/lmdb/../../../../../../evil`, /leads out of its folder/),
  'a folder of the header that climbs out': () => inFolder('../..', 'evil', /leads out of its folder/),
  'a name with backslashes': () => renamed('..\\..\\evil', /backslash/),
  'a name with a NUL, and another name behind it': () =>
    changed(DATA, (block) => block.write('../evil', `${SHARD}/lmdb/data.mdb`.length + 1, 'latin1'), /NUL byte/),
  'a folder of the header with something behind a NUL': () => changed(DATA, (block) => block.write('../evil', 346, 'latin1'), /NUL byte/),
  'a name of a folder': () => renamed(`${SHARD}/lmdb/`, /no name of a file/),
  'no name': () => changed(DATA, (block) => block.fill(0, 0, 100), /no name of a file/),
  'a name that differs in a dot': () => renamed(`${SHARD}/./lmdb/data.mdb`, /where `.*data\.mdb` belongs/),
  'a name in capitals': () => renamed(`${SHARD}/LMDB/data.mdb`, /where `.*data\.mdb` belongs/),
  // ---------------------------------------------------------------- kinds of members
  'a hard link': () => kind('1', /is a link/, '/etc/passwd'),
  'a symbolic link': () => kind('2', /is a link/, '/etc/passwd'),
  'a symbolic link to a folder, and a file through it': () =>
    inserted(DATA, { name: `${SHARD}/lmdb`, data: new Uint8Array(0), type: '2', link: '/tmp' }, 'member', /is a link/),
  'a plain file with a link name': () => kind('0', /is a link/, '/etc/passwd'),
  'a character device': () => kind('3', /is a device/),
  'a block device': () => kind('4', /is a device/),
  'a folder': () => inserted(DATA, { name: `${SHARD}/lmdb/`, data: new Uint8Array(0), type: '5' }, 'member', /is a folder/),
  'a pipe': () => kind('6', /is a pipe/),
  'a contiguous file': () => kind('7', /of a kind of its own/),
  'a sparse file': () => kind('S', /sparse file/),
  'a kind that nobody knows': () => kind('Z', /of a kind of its own/),
  'an extended header with another path': () => extension('x', pax('path', '../../evil'), /extended header/),
  'an extended header with another size': () => extension('x', pax('size', '9999999'), /extended header/),
  'an extended header with the size of a sparse file': () => extension('x', pax('GNU.sparse.size', '9999999'), /extended header/),
  'a global extended header': () => extension('g', pax('path', '../../evil'), /extended header/),
  'an extended header before the manifest': () => ({
    bytes: archiveOf([{ name: 'PaxHeader', data: pax('size', '1'), type: 'x' }, ...membersOf(SMALL)]),
    problem: 'member',
    says: /extended header/,
  }),
  'a long name of GNU': () => extension('L', Buffer.from('../../evil\0'), /long name/),
  'a long link of GNU': () => extension('K', Buffer.from('/etc/passwd\0'), /long name/),
  'a header of GNU': () => changed(DATA, (block) => block.write('ustar  \0', 257, 'latin1'), /plain tar \(ustar\)/),
  'a header of the time before ustar': () => changed(DATA, (block) => block.fill(0, 257, 265), /plain tar \(ustar\)/),
  // ---------------------------------------------------------------- members and the manifest
  'a member that the manifest does not have': () =>
    inserted(ROWS, { name: `${SHARD}/rows/8`, data: pattern(9, 9) }, 'member', /rows\/8`, where `.*rows\/7` belongs/),
  'a member twice': () => inserted(ROWS, membersOf(SMALL)[DATA] as HandMember, 'member', /data\.mdb`, where `.*rows\/7` belongs/),
  'a member missing': () => edited((members) => members.splice(ROWS, 1), 'member', /format\.json`, where `.*rows\/7` belongs/),
  'two members in the other order': () =>
    edited((members) => members.splice(DATA, 2, members[ROWS] as HandMember, members[DATA] as HandMember), 'member', /where/),
  'the manifest twice': () => inserted(DATA, membersOf(SMALL)[MANIFEST] as HandMember, 'member', /manifest\.json`, where/),
  'a member behind the checksums': () => inserted(CHECKSUMS + 1, { name: 'evil', data: pattern(9, 9) }, 'member', /behind its last one/),
  'the checksums before the files': () =>
    edited((members) => members.splice(DATA, 0, members.pop() as HandMember), 'member', /checksums\.json`, where/),
  'no checksums': () => edited((members) => members.pop(), 'truncated', /has no `checksums\.json`/),
  'one checksum too few': () =>
    edited((members) => members.splice(CHECKSUMS, 1, checksumsMember([pattern(1, 1)])), 'member', /belong there/),
  'checksums of the right size that are no list': () =>
    edited(
      (members) => members.splice(CHECKSUMS, 1, { name: 'checksums.json', data: encodeChecked('checksums', 'x'.repeat(56)) }),
      'damaged',
      /one checksum for each file/,
    ),
  'a checksum of another file': () =>
    edited(
      (members) => members.splice(CHECKSUMS, 1, checksumsMember([pattern(1, 1), pattern(2, 2), pattern(3, 3)])),
      'damaged',
      /lmdb\/data\.mdb/,
    ),
  // ---------------------------------------------------------------- sizes
  'a size that is larger than in the manifest': () => sized((data) => pattern(data.length + 1, 1), /701 bytes, and 700 belong/),
  'a size that is smaller than in the manifest': () => sized((data) => data.subarray(1), /699 bytes, and 700 belong/),
  'a size in the header of more than there is': () => header(DATA, 2 ** 32, /4294967296 bytes, and 700 belong/),
  'a binary size beyond all bounds': () =>
    changed(DATA, (block) => Buffer.from('80ffffffffffffffffffffff', 'hex').copy(block, 124), /does not match its checksum/, 'damaged'),
  'a negative size': () => changed(DATA, (block) => Buffer.from('ffffffffffffffffffffffff', 'hex').copy(block, 124), /has no size/),
  'a size that is no number': () => changed(DATA, (block) => block.write('elephants!\0\0', 124, 'latin1'), /has no size/),
  'a manifest that says it is larger than is taken': () => ({
    bytes: Buffer.concat([blockOf({ name: 'manifest.json', data: new Uint8Array(0), size: 65 * 2 ** 20 }), Buffer.alloc(1024)]),
    problem: 'tooLarge',
    says: /manifest of the archive has 68157440 bytes/,
  }),
  'a manifest that says it is larger than there is': () => ({
    bytes: Buffer.concat([blockOf({ name: 'manifest.json', data: new Uint8Array(0), size: 64 * 2 ** 20 }), Buffer.alloc(1024)]),
    problem: 'truncated',
    says: /within or before `manifest\.json`/,
  }),
  'files of more bytes than are taken, without their bytes': () =>
    claims([{ path: 'rows/7', bytes: 2 ** 41 }], 'tooLarge', /2199023255552 bytes, and 1099511627776/),
  'files of more bytes than a number can hold': () =>
    claims(
      Array.from({ length: 3 }, (_, n) => ({ path: `rows/${n}`, bytes: Number.MAX_SAFE_INTEGER })),
      'manifest',
      /more bytes than there can be/,
    ),
  'more files than are taken': () => ({
    ...claims(
      Array.from({ length: 12 }, (_, n) => ({ path: `rows/${n}`, bytes: 0 })),
      'tooLarge',
      /more than 10 files/,
    ),
    limits: { filesMax: 10 },
  }),
  // ---------------------------------------------------------------- the manifest
  'a path of the manifest that climbs out': () => claims([{ path: '../../evil', bytes: 1 }], 'manifest', /no path below/),
  'a path of the manifest that climbs out in its midst': () =>
    claims([{ path: 'rows/../../../evil', bytes: 1 }], 'manifest', /no path below/),
  'an absolute path of the manifest': () => claims([{ path: ABSOLUTE, bytes: 1 }], 'manifest', /no path below/),
  'a path of the manifest with backslashes': () => claims([{ path: '..\\evil', bytes: 1 }], 'manifest', /no path below/),
  'a path of the manifest with a NUL': () => claims([{ path: 'rows/7\0', bytes: 1 }], 'manifest', /no path below/),
  'a path of the manifest that begins with a dot': () => claims([{ path: '.long-names/0', bytes: 1 }], 'manifest', /no path below/),
  'an empty part of a path of the manifest': () => claims([{ path: 'rows//7', bytes: 1 }], 'manifest', /no path below/),
  'a path of the manifest that is longer than file systems take': () =>
    claims([{ path: 'x'.repeat(256), bytes: 1 }], 'manifest', /no path below/),
  'a path of the manifest twice': () =>
    claims(
      [
        { path: 'a', bytes: 1 },
        { path: 'a', bytes: 1 },
      ],
      'manifest',
      /path `a` twice/,
    ),
  'two paths of the manifest that are one where capitals do not count': () =>
    claims(
      [
        { path: 'a', bytes: 1 },
        { path: 'A', bytes: 1 },
      ],
      'manifest',
      /path `a` twice/,
    ),
  'a file of the manifest below another file': () =>
    claims(
      [
        { path: 'rows', bytes: 1 },
        { path: 'rows/7', bytes: 1 },
      ],
      'manifest',
      /below another file/,
    ),
  'a negative size in the manifest': () => claims([{ path: 'a', bytes: -1 }], 'manifest', /bytes` is no whole number/),
  'a size in the manifest with a fraction': () => claims([{ path: 'a', bytes: 1.5 }], 'manifest', /bytes` is no whole number/),
  'a size in the manifest that is a text': () => claims([{ path: 'a', bytes: '1' }], 'manifest', /bytes` is no whole number/),
  'a manifest without collections': () => manifested({ collections: undefined }, /lacks `collections`/),
  'a manifest with a member of tomorrow': () => manifested({ later: 'x' }, /has `later`, which this release does not know/),
  'a manifest with another prototype': () => text(`{"format":1,"__proto__":{"kind":"full"},"version":"1"}`, 'manifest', /has `__proto__`/),
  'a manifest whose members are of its prototype only': () =>
    text(
      JSON.stringify({ format: 1, ...manifestOf(SMALL) }).replace('"shards":', '"constructor":1,"shards":'),
      'manifest',
      /has `constructor`/,
    ),
  'a manifest that is a list': () => text('[]', 'manifest', /`format`/),
  'a manifest that is null': () => text('null', 'manifest', /`format`/),
  'a kind that nobody knows of': () => manifested({ kind: 'everything' }, /none of `collection`/),
  'a collection archive with aliases': () => manifested({ aliases: [{ alias: 'a', collection: 'b' }] }, /only full archives/),
  'a shard archive without its shard': () =>
    manifested({ kind: 'shard', collections: [{ name: 'c', description: {}, shards: [] }] }, /not exactly one shard/),
  'a time that is none': () => manifested({ createdAt: '2026-13-41T25:61:61Z' }, /no time such as/),
  'a manifest with the format of tomorrow': () => text('{"format":3,"something":"else"}', 'newer', /format 3, and this release reads/),
  'a manifest whose base is none': () => manifested({ base: 'yesterday.snapshot' }, /`base` is no object/),
  'a manifest of the format with a base that has none': () => text(JSON.stringify({ ...manifestOf(SMALL), format: 2 }), 'manifest', /base/),
  'a manifest in a container of tomorrow': () => ({
    ...raw(Buffer.from('{"format":7,"checksum":"0123456789abcdef","manifest":{}}\n')),
    problem: 'newer',
    says: /format 7/,
  }),
  'a manifest without a format': () => text('{"kind":"full"}', 'manifest', /`format`/),
  'a manifest of format 0': () => text('{"format":0}', 'manifest', /`format`/),
  'a manifest with a wrong checksum': () => {
    const data = Buffer.from((membersOf(SMALL)[MANIFEST] as HandMember).data);
    data.write('9', data.indexOf('"points":3') + 9);
    return { ...raw(data), problem: 'damaged', says: /checksum does not match/ };
  },
  'a manifest that is no JSON': () => ({ ...raw(Buffer.from('hello')), problem: 'damaged', says: /does not begin as/ }),
  'a manifest that is empty': () => ({ ...raw(new Uint8Array(0)), problem: 'damaged', says: /does not begin as/ }),
  // ---------------------------------------------------------------- other files
  'an empty file': () => foreign(Buffer.alloc(0), /it is empty/),
  'a file of zeros': () => foreign(Buffer.alloc(10_240), /does not begin as a tar/),
  'a file of a few bytes': () => foreign(Buffer.from('hello'), /does not begin as a tar/),
  'a file of noise': () => foreign(pattern(10_000, 77), /does not begin as a tar/),
  'a tar of something else': () => foreign(archiveOf([{ name: 'config.json', data: Buffer.from('{}') }]), /first member is `config\.json`/),
  'an archive in gzip': () => foreign(gzip(archiveOf(membersOf(SMALL))), /compressed with gzip/),
  'an archive in zstd': () => foreign(zstd(), /compressed with zstd/),
  'an archive in bzip2': () => foreign(bzip2(), /compressed with bzip2/),
  'an archive in an archive': () => foreign(archiveOf([{ name: 'a.snapshot', data: archiveOf(membersOf(SMALL)) }]), /first member is/),
  // ---------------------------------------------------------------- the end, and between members
  'bytes behind the end': () => ({
    bytes: archiveOf(membersOf(SMALL), Buffer.alloc(1025)),
    problem: 'damaged',
    says: /more bytes behind its end/,
  }),
  'another archive behind the end': () => ({
    bytes: Buffer.concat([archiveOf(membersOf(SMALL)), archiveOf(membersOf(SMALL))]),
    problem: 'damaged',
    says: /more bytes behind its end/,
  }),
  'an end of one block': () => ({ bytes: archiveOf(membersOf(SMALL), END.subarray(512)), problem: 'truncated', says: /truncated/ }),
  'an end with a byte in it': () => ({
    bytes: archiveOf(membersOf(SMALL), Buffer.concat([Buffer.alloc(600), Buffer.from('x'), Buffer.alloc(423)])),
    problem: 'damaged',
    says: /two blocks of zeros/,
  }),
  'an end in the midst': () => ({
    bytes: Buffer.concat([...membersOf(SMALL).slice(0, ROWS).map(bytesOf), END, ...membersOf(SMALL).slice(ROWS).map(bytesOf), END]),
    problem: 'truncated',
    says: /has no `.*rows\/7`/,
  }),
  'something in the padding': () =>
    edited((members) => members.splice(DATA, 1, { ...(members[DATA] as HandMember), padding: pattern(324, 3) }), 'damaged', /not zero/),
  'a header whose checksum is wrong': () =>
    edited(
      (members) => members.splice(DATA, 1, { ...(members[DATA] as HandMember), spoil: (block) => block.write('9', 105) }),
      'damaged',
      /does not match its checksum/,
    ),
};

test('the archive that all hostile ones are made of is taken', async (t) => {
  const { outcome } = await tryToUnpack(folderFor(t), archiveOf(membersOf(SMALL)));
  assert.equal(outcome, null);
});

for (const [name, make] of Object.entries(CASES)) {
  test(`refused, with nothing left and nothing written elsewhere: ${name}`, async (t) => {
    const { bytes, limits, problem, says } = make();
    const { outcome, before, after } = await tryToUnpack(folderFor(t), bytes, limits);
    assert.ok(outcome instanceof ArchiveError, `${outcome}`);
    assert.deepEqual([outcome.problem, outcome.code, outcome.outcome], [problem, 'wrongInput', 'none'], outcome.detail);
    assert.match(outcome.detail, says);
    assert.deepEqual(after, before);
    assert.equal(fs.existsSync(ABSOLUTE), false);
  });
}

test('what verify tells of a hostile archive is what unpacking refuses it for', async (t) => {
  const folder = folderFor(t);
  for (const [name, make] of Object.entries(CASES)) {
    const { bytes, limits, says } = make();
    // Limits are those of whoever unpacks.
    if (limits !== undefined || name.startsWith('files of more bytes than are taken')) continue;
    const file = path.join(folder, 'a.snapshot');
    fs.writeFileSync(file, bytes);
    const problems: string[] = [];
    await verifyArchive(file, { tell: (problem) => problems.push(problem) });
    assert.match(problems[0] ?? 'nothing', says, name);
  }
});

test('there are at least 40 hostile archives', () => {
  assert.ok(Object.keys(CASES).length >= 40, `${Object.keys(CASES).length}`);
});

/** Unpacks within a folder that has a file above the target's folder. Result: what was there before and afterwards. */
async function tryToUnpack(folder: string, bytes: Buffer, limits: Hostile['limits'] = {}) {
  const target = path.join(folder, 'a/b/staging');
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(path.join(folder, 'a/mine'), 'mine');
  const file = path.join(folder, 'hostile.snapshot');
  fs.writeFileSync(file, bytes);
  const before = contentOf(folder);
  const request = { from: file, folder: target, limits: { ...ROOM, ...limits }, expectedSha256: null };
  const outcome = await unpackArchive(request).then(
    () => null,
    (error: unknown) => error,
  );
  const isThere = fs.existsSync(target);
  assert.equal(isThere, outcome === null);
  return { outcome, before, after: contentOf(folder) };
}

function edited(edit: (members: HandMember[]) => void, problem: ArchiveProblem, says: RegExp): Hostile {
  const members = membersOf(SMALL);
  edit(members);
  return { bytes: archiveOf(members), problem, says };
}

function inserted(at: number, member: HandMember, problem: ArchiveProblem, says: RegExp): Hostile {
  return edited((members) => members.splice(at, 0, member), problem, says);
}

function renamed(name: string, says: RegExp): Hostile {
  return edited((members) => members.splice(DATA, 1, { ...(members[DATA] as HandMember), name }), 'member', says);
}

/** The folder of the name is in the header's field for it. */
function inFolder(folder: string, name: string, says: RegExp): Hostile {
  return changed(
    DATA,
    (block) => {
      block.fill(0, 0, 100);
      block.write(name, 0, 'latin1');
      block.write(folder, 345, 'latin1');
    },
    says,
  );
}

/** change: of the header, whose checksum is right. */
function changed(at: number, change: (block: Buffer) => void, says: RegExp, problem: ArchiveProblem = 'member'): Hostile {
  return edited((members) => members.splice(at, 1, { ...(members[at] as HandMember), change }), problem, says);
}

function kind(type: string, says: RegExp, link?: string): Hostile {
  const named = link === undefined ? {} : { link };
  return edited((members) => members.splice(DATA, 1, { ...(members[DATA] as HandMember), type, ...named }), 'member', says);
}

/** A member that says something of the one behind it. */
function extension(type: string, data: Uint8Array, says: RegExp): Hostile {
  return inserted(DATA, { name: '././@LongLink', data, type }, 'member', says);
}

function pax(key: string, value: string): Buffer {
  const text = ` ${key}=${value}\n`;
  const length = text.length + String(text.length + 2).length;
  return Buffer.from(`${length}${text}`);
}

function sized(change: (data: Uint8Array) => Uint8Array, says: RegExp): Hostile {
  return edited(
    (members) => {
      const member = members[DATA] as HandMember;
      members.splice(DATA, 1, { ...member, data: change(member.data) });
    },
    'member',
    says,
  );
}

function header(at: number, size: number, says: RegExp): Hostile {
  return edited((members) => members.splice(at, 1, { ...(members[at] as HandMember), size }), 'member', says);
}

/** A manifest with these files, of any shape, and nothing behind it. */
function claims(files: readonly object[], problem: ArchiveProblem, says: RegExp): Hostile {
  const { collections, ...rest } = manifestOf({});
  const shards = [{ ...collections[0]?.shards[0], files }];
  return { bytes: archiveOf([manifestMember({ ...rest, collections: [{ name: 'one', description: {}, shards }] })]), problem, says };
}

function manifested(change: object, says: RegExp): Hostile {
  const [, ...others] = membersOf(SMALL);
  return { bytes: archiveOf([manifestMember({ ...manifestOf(SMALL), ...change }), ...others]), problem: 'manifest', says };
}

/** The manifest's value as a text, in a container whose checksum is right. */
function text(json: string, problem: ArchiveProblem, says: RegExp): Hostile {
  return { ...raw(encodeChecked('manifest', JSON.parse(json))), problem, says };
}

function raw(data: Uint8Array): Pick<Hostile, 'bytes'> {
  const [, ...others] = membersOf(SMALL);
  return { bytes: archiveOf([{ name: 'manifest.json', data }, ...others]) };
}

function foreign(bytes: Buffer, says: RegExp): Hostile {
  return { bytes, problem: 'foreign', says };
}
