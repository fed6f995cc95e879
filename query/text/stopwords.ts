/** Stop words: words too common to say what a text is about. */

import { createRequire } from 'node:module';
import type { StopwordLanguage, Stopwords } from '../../protocols/model/text.js';
import { MORE_STOPWORDS, OWN_STOPWORDS } from './stopword-lists.js';

const require = createRequire(import.meta.url);

/** Each language is loaded when it is first asked for: all of them together would make the start of every thread longer. */
const PACKAGED: { readonly [language in StopwordLanguage]?: () => { readonly stopwords: readonly string[] } } = {
  arabic: () => require('@orama/stopwords/arabic'),
  chinese: () => require('@orama/stopwords/mandarin'),
  danish: () => require('@orama/stopwords/danish'),
  dutch: () => require('@orama/stopwords/dutch'),
  english: () => require('@orama/stopwords/english'),
  finnish: () => require('@orama/stopwords/finnish'),
  french: () => require('@orama/stopwords/french'),
  german: () => require('@orama/stopwords/german'),
  greek: () => require('@orama/stopwords/greek'),
  hungarian: () => require('@orama/stopwords/hungarian'),
  indonesian: () => require('@orama/stopwords/indonesian'),
  italian: () => require('@orama/stopwords/italian'),
  japanese: () => require('@orama/stopwords/japanese'),
  nepali: () => require('@orama/stopwords/nepali'),
  norwegian: () => require('@orama/stopwords/norwegian'),
  portuguese: () => require('@orama/stopwords/portuguese'),
  romanian: () => require('@orama/stopwords/romanian'),
  russian: () => require('@orama/stopwords/russian'),
  spanish: () => require('@orama/stopwords/spanish'),
  swedish: () => require('@orama/stopwords/swedish'),
  turkish: () => require('@orama/stopwords/turkish'),
};

/** The words of a language, in small letters. */
export function languageStopwords(language: StopwordLanguage): string[] {
  const listed = [OWN_STOPWORDS[language] ?? '', MORE_STOPWORDS[language] ?? ''].join(' ').split(/\s+/);
  return [...(PACKAGED[language]?.().stopwords ?? []), ...listed].filter((word) => word !== '');
}

/** All words that `stopwords` names. normal: what is done to words of a text before they are compared. */
export function stopwordSet(stopwords: Stopwords, normal: (word: string) => string): ReadonlySet<string> {
  const { languages, custom } = typeof stopwords === 'string' ? { languages: [stopwords], custom: [] } : stopwords;
  return new Set([...(languages ?? []).flatMap(languageStopwords), ...(custom ?? [])].map(normal));
}
