/**
 * Texts as tokens, by the parameters of a text index or of a BM25 document.
 *
 * Words are cut out (`tokenize.ts`), folded to ASCII, put in small letters, dropped when they are stop words, stemmed,
 * and dropped when they are too short or too long: each step where the parameters ask for it. The tokenizer `prefix` then makes
 * a word of a document the beginnings of that word, and a word of a query the longest such beginning, without dropping long words.
 */

import type { TextOptions } from '../../protocols/model/text.js';
import { foldToAscii } from './fold.js';
import { stemmerOf } from './stemmers.js';
import { stopwordSet } from './stopwords.js';
import { tokensOf } from './tokenize.js';

/** Longest beginning of a word that is a token, in characters. Longer words begin alike. */
const PREFIX_LENGTH_MAX = 255;
/** Longer ones are no words of a language: stemmers take seconds for a megabyte without a space. */
const STEMMED_LENGTH_MAX = 255;
const LONE_SURROGATE = /\p{Surrogate}/gu;

export interface Analyzer {
  /** Tokens of a document in the order of its words, repeated ones too. */
  document(text: string): string[];
  /** Tokens of a query in the order of its words. */
  query(text: string): string[];
  /** Whether the words of a document hold these tokens of a query next to each other, in their order. No tokens: never. */
  holdsPhrase(text: string, tokens: readonly string[]): boolean;
}

const kept = new Map<string, Analyzer>();
const KEPT_MAX = 1000;

/** The analyzer of these options. Other members of the object don't count. */
export function analyzerFor(options: TextOptions): Analyzer {
  const { tokenizer, min_token_len, max_token_len, lowercase, ascii_folding, stopwords, stemmer } = options;
  const key = JSON.stringify([tokenizer, min_token_len, max_token_len, lowercase, ascii_folding, stopwords, stemmer]);
  let analyzer = kept.get(key);
  if (analyzer === undefined) {
    analyzer = makeAnalyzer(options);
    if (kept.size >= KEPT_MAX) kept.clear();
    kept.set(key, analyzer);
  }
  return analyzer;
}

function makeAnalyzer(options: TextOptions): Analyzer {
  const tokenizer = options.tokenizer ?? 'word';
  const min = options.min_token_len ?? 0;
  const max = options.max_token_len ?? Number.POSITIVE_INFINITY;
  const word = wordStep(options);
  const words = (text: string): string[] => {
    // Half a surrogate pair has no UTF-8, and a letter one spelling.
    const found: string[] = [];
    for (const raw of tokensOf(tokenizer, text.replace(LONE_SURROGATE, '\ufffd').normalize('NFC'))) {
      const token = word(raw);
      if (token !== undefined && token !== '') found.push(token);
    }
    return found;
  };
  if (tokenizer === 'prefix') return prefixAnalyzer(words, Math.max(1, min), Math.min(max, PREFIX_LENGTH_MAX));
  const tokens = (text: string): string[] => words(text).filter((one) => isWithin(one, min, max));
  return {
    document: tokens,
    query: tokens,
    holdsPhrase: (text, phrase) => holdsRun(tokens(text), phrase, (one, wanted) => one === wanted),
  };
}

/** What becomes of one word; undefined for a stop word. */
function wordStep(options: TextOptions): (word: string) => string | undefined {
  const folds = options.ascii_folding ?? false;
  const lowers = options.lowercase ?? true;
  const normal = (word: string): string => {
    const ascii = folds ? foldToAscii(word) : word;
    return lowers ? ascii.toLowerCase() : ascii;
  };
  const stops = options.stopwords === null || options.stopwords === undefined ? null : stopwordSet(options.stopwords, normal);
  const stem = options.stemmer === null || options.stemmer === undefined ? null : stemmerOf(options.stemmer.language);
  return (word) => {
    const token = normal(word);
    if (stops?.has(token)) return undefined;
    return stem === null || token.length > STEMMED_LENGTH_MAX ? token : stem(token);
  };
}

function prefixAnalyzer(words: (text: string) => string[], min: number, max: number): Analyzer {
  const longEnough = (text: string): string[] =>
    min > max ? [] : words(text).filter((one) => isWithin(one, min, Number.POSITIVE_INFINITY));
  const query = (text: string): string[] => longEnough(text).map((one) => Array.from(one).slice(0, max).join(''));
  return {
    document: (text) => longEnough(text).flatMap((one) => beginnings(one, min, max)),
    query,
    holdsPhrase: (text, phrase) => holdsRun(query(text), phrase, (one, wanted) => one.startsWith(wanted)),
  };
}

function beginnings(word: string, min: number, max: number): string[] {
  const letters = Array.from(word);
  const found: string[] = [];
  let beginning = letters.slice(0, min - 1).join('');
  for (let length = min; length <= max && length <= letters.length; length++) {
    beginning += letters[length - 1] as string;
    found.push(beginning);
  }
  return found;
}

function holdsRun(words: readonly string[], wanted: readonly string[], fits: (word: string, wanted: string) => boolean): boolean {
  if (wanted.length === 0) return false;
  for (let at = 0; at + wanted.length <= words.length; at++) {
    if (wanted.every((one, offset) => fits(words[at + offset] as string, one))) return true;
  }
  return false;
}

/** Length in characters, both ends included. */
function isWithin(token: string, min: number, max: number): boolean {
  // Units of UTF-16 are as many as characters or up to twice as many.
  if (token.length < min || token.length > max * 2) return false;
  if (token.length <= max && token.length >= min * 2) return true;
  const length = Array.from(token).length;
  return length >= min && length <= max;
}
