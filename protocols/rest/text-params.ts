/** Decodes how texts become tokens. Source: schemas TextIndexParams and Bm25Config of the API, scenario payload-indexes. */

import type { JsonValue } from '../model/payload.js';
import {
  STEMMER_LANGUAGES,
  STOPWORD_LANGUAGES,
  type Stemmer,
  type StopwordLanguage,
  type Stopwords,
  type TextOptions,
  type TextParams,
  TOKENIZERS,
} from '../model/text.js';
import { Fields, isObject, wrongType } from './fields.js';

const LENGTH_MAX = Number.MAX_SAFE_INTEGER;

/** The parameters that are given, as they are shown again. Errors: `malformedBody`. */
export function decodeTextOptions(fields: Fields): TextOptions {
  return {
    ...given('tokenizer', fields.word('tokenizer', TOKENIZERS)),
    ...given('min_token_len', fields.integer('min_token_len', { max: LENGTH_MAX })),
    ...given('max_token_len', fields.integer('max_token_len', { max: LENGTH_MAX })),
    ...given('lowercase', fields.boolean('lowercase')),
    ...given('ascii_folding', fields.boolean('ascii_folding')),
    ...given('stopwords', stopwordsOf(fields)),
    ...given('stemmer', stemmerOf(fields)),
  };
}

/** Parameters of a text index. Errors: `malformedBody`. */
export function decodeTextParams(fields: Fields): TextParams {
  const { tokenizer = 'word', ...others } = decodeTextOptions(fields);
  return { tokenizer, ...others, ...given('phrase_matching', fields.boolean('phrase_matching')) };
}

function stopwordsOf(fields: Fields): Stopwords | undefined {
  const value = fields.value('stopwords');
  if (value === undefined) return undefined;
  const path = fields.pathOf('stopwords');
  if (!isObject(value)) return languageOf(value, path);
  const set = Fields.of(value, path);
  const languages = listOf(set.value('languages'), set.pathOf('languages'), languageOf);
  const custom = listOf(set.value('custom'), set.pathOf('custom'), textOf);
  return { ...given('languages', languages), ...given('custom', custom) };
}

function stemmerOf(fields: Fields): Stemmer | undefined {
  const stemmer = fields.nested('stemmer');
  if (stemmer === undefined) return undefined;
  const type = stemmer.word('type', ['snowball']);
  const language = stemmer.word('language', STEMMER_LANGUAGES);
  if (type === undefined) throw wrongType(stemmer.pathOf('type'), undefined, '`snowball`');
  if (language === undefined) throw wrongType(stemmer.pathOf('language'), undefined, 'a language');
  return { type, language };
}

/** Without repetitions. */
function listOf<One>(value: JsonValue | undefined, path: string, decode: (one: JsonValue, path: string) => One): One[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw wrongType(path, value, 'a list');
  return [...new Set(value.map((one, index) => decode(one, `${path}[${index}]`)))];
}

function languageOf(value: JsonValue, path: string): StopwordLanguage {
  const language = STOPWORD_LANGUAGES.find((known) => known === value);
  if (language === undefined) throw wrongType(path, value, `a language with stop words: ${STOPWORD_LANGUAGES.join(', ')}`);
  return language;
}

function textOf(value: JsonValue, path: string): string {
  if (typeof value !== 'string') throw wrongType(path, value, 'a string');
  return value;
}

function given<Name extends string, Value>(name: Name, value: Value | undefined): { [name in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [name in Name]?: Value };
}
