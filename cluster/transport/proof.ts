/**
 * How two nodes prove to each other that they have the same key, without sending it. Whoever calls proves it first, so that a stranger gets nothing
 * that was made with the key. Each proof holds for the two random numbers of this connection alone, and for one direction.
 *
 *     caller: preface, 32 random bytes
 *     called: 32 random bytes
 *     caller: u8 count, a proof of 32 bytes by each key that it has
 *     called: u8 1, its own proof by the key that fits; or u8 0, u16 length (little endian), why not, UTF-8: the end
 *
 * Nodes that know each other by certificates alone have no key: then there are no proofs, and the caller learns that its certificate was taken. Two nodes understand each other if they have one key in common, so keys are changed node by node (`service.alt_api_key`).
 */

import type { Duplex } from 'node:stream';
import { crypto } from '../../protocols/late-modules.js';

/** The number is the version of what follows. Neither gRPC, TLS nor a stream of calls begins with its first byte. */
export const MEMBER_PREFACE = Buffer.from('MEMBER OF TROUPE 1\n', 'latin1');

/** The keys of `service.api_key` and `service.alt_api_key` at most; a caller with more is none. */
const KEYS_MAX = 2;
const NONCE_BYTES = 32;
const PROOF_BYTES = 32;
const REASON_BYTES_MAX = 1024;
const REFUSED = 0;
const ADMITTED = 1;

type Side = 'caller' | 'called';

/** What is proven: made of a setting's text, so that nothing but a proof of it could be mistaken for one. */
export function memberKey(text: string): Uint8Array {
  return new Uint8Array(crypto().hkdfSync('sha256', text, 'troupe', 'members of a cluster, version 1', PROOF_BYTES));
}

/** The caller's side. Resolves when the other side has the key, too. Errors: why not. */
export async function proveMember(stream: Duplex, keys: readonly Uint8Array[]): Promise<void> {
  const own = crypto().randomBytes(NONCE_BYTES);
  stream.write(Buffer.concat([MEMBER_PREFACE, own]));
  const theirs = await bytesOf(stream, NONCE_BYTES);
  const numbers = Buffer.concat([own, theirs]);
  stream.write(Buffer.concat([Buffer.of(keys.length), ...keys.map((key) => proofOf(key, 'caller', numbers))]));
  const [verdict] = await bytesOf(stream, 1);
  if (verdict !== ADMITTED) {
    const length = (await bytesOf(stream, 2)).readUInt16LE();
    throw new Error((await bytesOf(stream, Math.min(length, REASON_BYTES_MAX))).toString('utf8'));
  }
  if (keys.length === 0) return;
  const answer = await bytesOf(stream, PROOF_BYTES);
  if (!keys.some((key) => isProof(answer, key, 'called', numbers)))
    throw new Error('the other side answers without having the key of this node');
}

/** The side that is called, from the preface on. Resolves when the caller has proven that it has a key. Errors: why not, which the caller has been told. */
export async function checkMember(stream: Duplex, keys: readonly Uint8Array[]): Promise<void> {
  const preface = await bytesOf(stream, MEMBER_PREFACE.length);
  if (!preface.equals(MEMBER_PREFACE)) throw new Error('it begins like no node of this release');
  const theirs = await bytesOf(stream, NONCE_BYTES);
  const own = crypto().randomBytes(NONCE_BYTES);
  const numbers = Buffer.concat([theirs, own]);
  stream.write(own);
  const [count = 0] = await bytesOf(stream, 1);
  const proofs = await bytesOf(stream, PROOF_BYTES * Math.min(count, KEYS_MAX));
  const fitting = keys.find((key) => at(proofs).some((proof) => isProof(proof, key, 'caller', numbers)));
  if (fitting === undefined && (count > 0 || keys.length > 0)) {
    const reason = keys.length === 0 ? NO_KEY : count === 0 ? NEEDS_KEY : OTHER_KEY;
    const text = Buffer.from(reason);
    const head = Buffer.of(REFUSED, text.length & 0xff, text.length >> 8);
    stream.end(Buffer.concat([head, text]));
    throw new Error(reason);
  }
  stream.write(Buffer.concat([Buffer.of(ADMITTED), ...(fitting === undefined ? [] : [proofOf(fitting, 'called', numbers)])]));
}

/** Also what a caller without any handshake is told. */
export const NEEDS_KEY =
  'the node that was called talks to nodes with its key only (service.api_key): give all nodes of the cluster the same';
const NO_KEY = 'the node that was called has no key (service.api_key), the caller has one: give both the same';
const OTHER_KEY = 'the caller has another key than the node that it has called (service.api_key, service.alt_api_key)';

function proofOf(key: Uint8Array, side: Side, numbers: Buffer): Buffer {
  return crypto().createHmac('sha256', key).update(side).update(numbers).digest();
}

function isProof(proof: Buffer, key: Uint8Array, side: Side, numbers: Buffer): boolean {
  return crypto().timingSafeEqual(proof, proofOf(key, side, numbers));
}

function at(proofs: Buffer): Buffer[] {
  return Array.from({ length: proofs.length / PROOF_BYTES }, (_, index) => proofs.subarray(index * PROOF_BYTES, (index + 1) * PROOF_BYTES));
}

/** The next bytes of a stream that is not flowing. Errors: of the stream, or its end. */
function bytesOf(stream: Duplex, count: number): Promise<Buffer> {
  if (count === 0) return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    const over = (): void => void stream.off('readable', take).off('end', gone).off('close', gone).off('error', gone);
    const gone = (error?: Error): void => {
      over();
      reject(error ?? new Error('the other side has ended the connection before the end of the handshake'));
    };
    const take = (): void => {
      const bytes = stream.read(count) as Buffer | null;
      if (bytes === null) return;
      over();
      if (bytes.length === count) resolve(bytes);
      else gone();
    };
    stream.on('readable', take).on('end', gone).on('close', gone).on('error', gone);
    take();
  });
}
