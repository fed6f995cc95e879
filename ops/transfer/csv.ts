/** CSV as rows. Source: RFC 4180; a record may end in LF, and separators may be others. */

import type { FileRow } from './rows.js';

export interface CsvOptions {
  readonly separator: string;
  /** Columns whose values stay texts. */
  readonly texts: ReadonlySet<string>;
}

/** Rows under the first record's names. Whole numbers, decimals, true and false become values; empty fields are left out. */
export async function* csvRows(chunks: AsyncIterable<string>, { separator, texts }: CsvOptions): AsyncGenerator<FileRow> {
  let names: readonly string[] | null = null;
  for await (const record of csvRecords(chunks, separator)) {
    if (names === null) {
      names = record.map((name, at) => (at === 0 ? name.replace(/^\uFEFF/, '') : name).trim());
      continue;
    }
    const row: [string, unknown][] = [];
    for (const [at, name] of names.entries()) {
      const text = record[at];
      if (text !== undefined && text !== '') row.push([name, texts.has(name) ? text : valueOfField(text)]);
    }
    yield Object.fromEntries(row);
  }
}

/** Leading zeros belong to texts such as postcodes. */
function valueOfField(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^-?(0|[1-9]\d{0,18})$/.test(text)) {
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : BigInt(text);
  }
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$/.test(text) ? Number(text) : text;
}

/** Fields of each record; empty lines are none. */
async function* csvRecords(chunks: AsyncIterable<string>, separator: string): AsyncGenerator<string[]> {
  let record: string[] = [];
  let field = '';
  let isQuoted = false;
  /** A quote within quotes: the end of the field, or the first of two. */
  let mayEnd = false;
  const endField = (): void => {
    record.push(field);
    field = '';
  };
  for await (const chunk of chunks) {
    for (const character of chunk) {
      if (mayEnd) {
        mayEnd = false;
        if (character === '"') {
          field += '"';
          continue;
        }
        isQuoted = false;
      }
      if (isQuoted) {
        if (character === '"') mayEnd = true;
        else field += character;
      } else if (character === '"' && field === '') isQuoted = true;
      else if (character === separator) endField();
      else if (character === '\n') {
        if (field.endsWith('\r')) field = field.slice(0, -1);
        endField();
        if (record.length > 1 || record[0] !== '') yield record;
        record = [];
      } else field += character;
    }
  }
  if (field !== '' || record.length > 0) {
    endField();
    yield record;
  }
}
