/** Texts cut into words, in order, before anything is done to the words. */

import type { Tokenizer } from '../../protocols/model/text.js';

const NOT_SPACE = /\P{White_Space}+/gu;
const WORDS = /[\p{Alphabetic}\p{N}]+/gu;
/** A letter of a script without spaces between words, with its marks. */
const UNSPACED =
  '(?=[\\p{Alphabetic}\\p{N}])[\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{scx=Thai}\\p{scx=Lao}\\p{scx=Khmer}\\p{scx=Myanmar}]\\p{M}*';

/** Made when they are first needed: a thread takes some 2 ms to read the patterns, and 10 ms and 3 MB to load the dictionaries. */
let unspacedText: { readonly has: RegExp; readonly runs: RegExp } | undefined;
let segmenter: Intl.Segmenter | undefined;

/** The words of a text. Those of `prefix`, of which the beginnings are taken, are those of `word`. */
export function tokensOf(tokenizer: Tokenizer, text: string): readonly string[] {
  if (tokenizer === 'whitespace') return text.match(NOT_SPACE) ?? [];
  if (tokenizer === 'multilingual' && unspaced().has.test(text)) return multilingualWords(text);
  return text.match(WORDS) ?? [];
}

/** has: finds such a letter. runs: runs of such letters (in group 1), and words of all others. */
function unspaced(): { readonly has: RegExp; readonly runs: RegExp } {
  unspacedText ??= {
    has: new RegExp(UNSPACED, 'u'),
    runs: new RegExp(`((?:${UNSPACED})+)|(?:(?!${UNSPACED})[\\p{Alphabetic}\\p{N}])+`, 'gu'),
  };
  return unspacedText;
}

/** Runs of scripts without spaces are cut where the dictionaries of ICU find words. */
function multilingualWords(text: string): string[] {
  const words: string[] = [];
  for (const [run, withoutSpaces] of text.matchAll(unspaced().runs)) {
    if (withoutSpaces === undefined) words.push(run);
    else addSegments(run, words);
  }
  return words;
}

/** Segmenting takes time with the square of the length: a run of 150,000 letters half a minute. */
const PIECE_LENGTH = 256;

/** Adds the words of a run, piece by piece; the last word of a piece may go on, so the next piece begins with it. */
function addSegments(run: string, words: string[]): void {
  segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
  for (let from = 0; from < run.length; ) {
    const isLast = from + PIECE_LENGTH >= run.length;
    const segments = [...segmenter.segment(run.slice(from, from + PIECE_LENGTH))];
    if (!isLast && segments.length > 1) segments.pop();
    for (const { segment, isWordLike } of segments) {
      if (isWordLike) words.push(segment);
      from += segment.length;
    }
  }
}
