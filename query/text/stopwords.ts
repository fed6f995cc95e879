/** Stop words: words too common to say what a text is about. */

import { stopwords as arabic } from '@orama/stopwords/arabic';
import { stopwords as danish } from '@orama/stopwords/danish';
import { stopwords as dutch } from '@orama/stopwords/dutch';
import { stopwords as english } from '@orama/stopwords/english';
import { stopwords as finnish } from '@orama/stopwords/finnish';
import { stopwords as french } from '@orama/stopwords/french';
import { stopwords as german } from '@orama/stopwords/german';
import { stopwords as greek } from '@orama/stopwords/greek';
import { stopwords as hungarian } from '@orama/stopwords/hungarian';
import { stopwords as indonesian } from '@orama/stopwords/indonesian';
import { stopwords as italian } from '@orama/stopwords/italian';
import { stopwords as japanese } from '@orama/stopwords/japanese';
import { stopwords as chinese } from '@orama/stopwords/mandarin';
import { stopwords as nepali } from '@orama/stopwords/nepali';
import { stopwords as norwegian } from '@orama/stopwords/norwegian';
import { stopwords as portuguese } from '@orama/stopwords/portuguese';
import { stopwords as romanian } from '@orama/stopwords/romanian';
import { stopwords as russian } from '@orama/stopwords/russian';
import { stopwords as spanish } from '@orama/stopwords/spanish';
import { stopwords as swedish } from '@orama/stopwords/swedish';
import { stopwords as turkish } from '@orama/stopwords/turkish';
import type { StopwordLanguage, Stopwords } from '../../protocols/model/text.js';
import { MORE_STOPWORDS, OWN_STOPWORDS } from './stopword-lists.js';

const PACKAGED: { readonly [language in StopwordLanguage]?: readonly string[] } = {
  arabic,
  chinese,
  danish,
  dutch,
  english,
  finnish,
  french,
  german,
  greek,
  hungarian,
  indonesian,
  italian,
  japanese,
  nepali,
  norwegian,
  portuguese,
  romanian,
  russian,
  spanish,
  swedish,
  turkish,
};

/** The words of a language, in small letters. */
export function languageStopwords(language: StopwordLanguage): string[] {
  const listed = [OWN_STOPWORDS[language] ?? '', MORE_STOPWORDS[language] ?? ''].join(' ').split(/\s+/);
  return [...(PACKAGED[language] ?? []), ...listed].filter((word) => word !== '');
}

/** All words that `stopwords` names. normal: what is done to words of a text before they are compared. */
export function stopwordSet(stopwords: Stopwords, normal: (word: string) => string): ReadonlySet<string> {
  const { languages, custom } = typeof stopwords === 'string' ? { languages: [stopwords], custom: [] } : stopwords;
  return new Set([...(languages ?? []).flatMap(languageStopwords), ...(custom ?? [])].map(normal));
}
