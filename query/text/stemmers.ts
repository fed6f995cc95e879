/**
 * Snowball's stemmers. Those of `@orama/stemmers` give Snowball's results (compared with Snowball 2.2 on 160 to 920 words
 * of each language) but for English, where they follow the older Porter rules; `snowball-stemmers` has the current ones.
 */

import { createRequire } from 'node:module';
import type { StemmerLanguage } from '../../protocols/model/text.js';

/** The stem of a word in small letters. */
export type Stem = (word: string) => string;

/** Stems that are kept; the words of a language come again and again. */
const STEMS_MAX = 50_000;
const kept = new Map<StemmerLanguage, Stem>();

/** The stemmer of a language. */
export function stemmerOf(language: StemmerLanguage): Stem {
  let stem = kept.get(language);
  if (stem === undefined) {
    stem = withMemory(language === 'english' ? englishStemmer() : PACKAGED[language]().stemmer);
    kept.set(language, stem);
  }
  return stem;
}

// Each language is loaded with its first word: all of them together would make the start of every thread longer.
const require = createRequire(import.meta.url);

const PACKAGED: { readonly [language in Exclude<StemmerLanguage, 'english'>]: () => { readonly stemmer: Stem } } = {
  arabic: () => require('@orama/stemmers/arabic'),
  armenian: () => require('@orama/stemmers/armenian'),
  danish: () => require('@orama/stemmers/danish'),
  dutch: () => require('@orama/stemmers/dutch'),
  finnish: () => require('@orama/stemmers/finnish'),
  french: () => require('@orama/stemmers/french'),
  german: () => require('@orama/stemmers/german'),
  greek: () => require('@orama/stemmers/greek'),
  hungarian: () => require('@orama/stemmers/hungarian'),
  italian: () => require('@orama/stemmers/italian'),
  norwegian: () => require('@orama/stemmers/norwegian'),
  portuguese: () => require('@orama/stemmers/portuguese'),
  romanian: () => require('@orama/stemmers/romanian'),
  russian: () => require('@orama/stemmers/russian'),
  spanish: () => require('@orama/stemmers/spanish'),
  swedish: () => require('@orama/stemmers/swedish'),
  tamil: () => require('@orama/stemmers/tamil'),
  turkish: () => require('@orama/stemmers/turkish'),
};

/** The package has all languages in one module of 1 MB. */
function englishStemmer(): Stem {
  const snowball = require('snowball-stemmers') as { newStemmer(language: string): { stem: Stem } };
  const stemmer = snowball.newStemmer('english');
  return (word) => stemmer.stem(word);
}

function withMemory(stem: Stem): Stem {
  const stems = new Map<string, string>();
  return (word) => {
    const known = stems.get(word);
    if (known !== undefined) return known;
    const result = stem(word);
    if (stems.size >= STEMS_MAX) stems.clear();
    stems.set(word, result);
    return result;
  };
}
