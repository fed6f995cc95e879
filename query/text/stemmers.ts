/**
 * Snowball's stemmers. Those of `@orama/stemmers` give Snowball's results (compared with Snowball 2.2 on 160 to 920 words
 * of each language) but for English, where they follow the older Porter rules; `snowball-stemmers` has the current ones.
 */

import { createRequire } from 'node:module';
import { stemmer as arabic } from '@orama/stemmers/arabic';
import { stemmer as armenian } from '@orama/stemmers/armenian';
import { stemmer as danish } from '@orama/stemmers/danish';
import { stemmer as dutch } from '@orama/stemmers/dutch';
import { stemmer as finnish } from '@orama/stemmers/finnish';
import { stemmer as french } from '@orama/stemmers/french';
import { stemmer as german } from '@orama/stemmers/german';
import { stemmer as greek } from '@orama/stemmers/greek';
import { stemmer as hungarian } from '@orama/stemmers/hungarian';
import { stemmer as italian } from '@orama/stemmers/italian';
import { stemmer as norwegian } from '@orama/stemmers/norwegian';
import { stemmer as portuguese } from '@orama/stemmers/portuguese';
import { stemmer as romanian } from '@orama/stemmers/romanian';
import { stemmer as russian } from '@orama/stemmers/russian';
import { stemmer as spanish } from '@orama/stemmers/spanish';
import { stemmer as swedish } from '@orama/stemmers/swedish';
import { stemmer as tamil } from '@orama/stemmers/tamil';
import { stemmer as turkish } from '@orama/stemmers/turkish';
import type { StemmerLanguage } from '../../protocols/model/text.js';

/** The stem of a word in small letters. */
export type Stem = (word: string) => string;

const STEMMERS: { readonly [language in Exclude<StemmerLanguage, 'english'>]: Stem } = {
  arabic,
  armenian,
  danish,
  dutch,
  finnish,
  french,
  german,
  greek,
  hungarian,
  italian,
  norwegian,
  portuguese,
  romanian,
  russian,
  spanish,
  swedish,
  tamil,
  turkish,
};

/** Stems that are kept; the words of a language come again and again. */
const STEMS_MAX = 50_000;
const kept = new Map<StemmerLanguage, Stem>();

/** The stemmer of a language. */
export function stemmerOf(language: StemmerLanguage): Stem {
  let stem = kept.get(language);
  if (stem === undefined) {
    stem = withMemory(language === 'english' ? englishStemmer() : STEMMERS[language]);
    kept.set(language, stem);
  }
  return stem;
}

/** Loaded when it is first used: the package has all languages in one module of 1 MB. */
function englishStemmer(): Stem {
  const require = createRequire(import.meta.url);
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
