/** What a client asks for with the header `Range`. Source: RFC 9110, section 14. */

import type { ArchiveRange } from '../../../storage/snapshot-store/snapshot-store.js';

/** `unsatisfiable`: nothing of the range is there. */
export type WantedRange = ArchiveRange | 'whole' | 'unsatisfiable';

/** size: of the file, in bytes. What is no range of bytes, or more than one of them, asks for the whole file, as if it was not there. */
export function wantedRange(header: string | undefined, size: number): WantedRange {
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? '');
  if (match === null) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '') {
    if (last === '') return 'whole';
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return 'whole';
  return start >= size ? 'unsatisfiable' : { start, end };
}
