/** Decodes the options of a BM25 document. Source: schema Bm25Config of the API, behaviour.md «Built-in text model». */

import { type Bm25Options, STEMMER_LANGUAGES, STOPWORD_LANGUAGES, type TextOptions } from '../model/text.js';
import { Fields, type JsonObject, wrongType } from './fields.js';
import { decodeTextOptions } from './text-params.js';

const NAMES: ReadonlySet<string> = new Set(['bm25', 'qdrant/bm25']);
/** The value of `language` for texts of no language, or of many: without stop words and stemmer. */
const NO_LANGUAGE = 'none';
const LANGUAGES = [...new Set<string>([...STOPWORD_LANGUAGES, ...STEMMER_LANGUAGES])].sort();

/** Whether a model's name is one of BM25's, in small or capital letters. */
export function isBm25(model: string): boolean {
  return NAMES.has(model.toLowerCase());
}

/**
 * The options with their defaults. path: how messages name them.
 * Errors: `malformedBody` for wrong types and unknown words; `invalidValue` for numbers out of their range.
 */
export function decodeBm25Options(options: JsonObject, path: string): Bm25Options {
  const fields = Fields.of(options, path);
  // Within these ranges all values of a vector are finite, whatever the text.
  const k = fields.number('k', 0, 1e6) ?? 1.2;
  const b = fields.number('b', 0, 1) ?? 0.75;
  const avgLen = fields.number('avg_len', 0.001, 1e12) ?? 256;
  return { ...languageDefaults(fields), ...decodeTextOptions(fields), k, b, avgLen };
}

/** What a language brings: its stop words and its stemmer, as far as there are any. */
function languageDefaults(fields: Fields): TextOptions {
  const language = fields.value('language') ?? 'english';
  if (language === NO_LANGUAGE) return {};
  const stopwords = STOPWORD_LANGUAGES.find((known) => known === language);
  const stemmer = STEMMER_LANGUAGES.find((known) => known === language);
  if (stopwords === undefined && stemmer === undefined)
    throw wrongType(fields.pathOf('language'), language, `a language: ${LANGUAGES.join(', ')}; or \`${NO_LANGUAGE}\``);
  return { stopwords: stopwords ?? null, stemmer: stemmer === undefined ? null : { type: 'snowball', language: stemmer } };
}
