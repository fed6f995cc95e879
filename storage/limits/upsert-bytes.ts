/** The size of the points that a write request brings, as they were sent. Source: contract, behaviour.md, `upsert_max_batchsize`. */

import type { WriteOperation } from '../../protocols/model/update.js';
import { ByteScanner } from '../../protocols/rest/byte-scan.js';

/**
 * Bytes of the points of the largest upsert of a request: the value of `points` or `batch` of a JSON body, the whole of a message. What is no
 * JSON of an upsert has 0 points: its decoder says so.
 */
export function upsertBytes(operation: WriteOperation, body: Uint8Array, isMessage: boolean): number {
  if (operation !== 'upsertPoints' && operation !== 'batchUpdate') return 0;
  if (isMessage) return body.byteLength;
  const scanner = new ByteScanner(body);
  let most = 0;
  const upsert = (): boolean =>
    scanner.members((key) => {
      scanner.peek();
      const start = scanner.position;
      if (!scanner.skipValue()) return false;
      if (key === 'points' || key === 'batch') most = Math.max(most, body.subarray(start, scanner.position).findLastIndex(isMark) + 1);
      return true;
    });
  if (operation === 'upsertPoints') upsert();
  else {
    const operationOf = (key: string): boolean => (key === 'upsert' ? upsert() : scanner.skipValue());
    scanner.members((key) => (key === 'operations' ? scanner.items(() => scanner.members(operationOf)) : scanner.skipValue()));
  }
  return most;
}

function isMark(byte: number): boolean {
  return byte > 0x20;
}
