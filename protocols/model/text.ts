/** How texts become tokens, in the words of the API: parameters of text indexes and of BM25 documents. */

/** `word`: letters and digits; `whitespace`: all but white space; `prefix`: beginnings of words; `multilingual`: words also of scripts without spaces. */
export const TOKENIZERS = ['prefix', 'whitespace', 'word', 'multilingual'] as const;
export type Tokenizer = (typeof TOKENIZERS)[number];

/** Languages with stop words. */
export const STOPWORD_LANGUAGES = [
  'arabic',
  'azerbaijani',
  'basque',
  'bengali',
  'catalan',
  'chinese',
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'greek',
  'hebrew',
  'hinglish',
  'hungarian',
  'indonesian',
  'italian',
  'japanese',
  'kazakh',
  'nepali',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'slovene',
  'spanish',
  'swedish',
  'tajik',
  'turkish',
] as const;
export type StopwordLanguage = (typeof STOPWORD_LANGUAGES)[number];

/** Languages with a Snowball stemmer. */
export const STEMMER_LANGUAGES = [
  'arabic',
  'armenian',
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'greek',
  'hungarian',
  'italian',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'spanish',
  'swedish',
  'tamil',
  'turkish',
] as const;
export type StemmerLanguage = (typeof STEMMER_LANGUAGES)[number];

/** Words that are no tokens: those of a language, or of some languages and some more. */
export type Stopwords =
  | StopwordLanguage
  | { readonly languages?: readonly StopwordLanguage[] | null; readonly custom?: readonly string[] | null };

export interface Stemmer {
  readonly type: 'snowball';
  readonly language: StemmerLanguage;
}

/** What undefined and null mean: see each. Lengths are in characters. */
export interface TextOptions {
  /** `word`. */
  readonly tokenizer?: Tokenizer | null;
  /** Shorter and longer tokens are dropped; with `prefix`, the lengths of the beginnings. Default: any length. */
  readonly min_token_len?: number | null;
  readonly max_token_len?: number | null;
  /** true. */
  readonly lowercase?: boolean | null;
  /** Letters become the ASCII ones they are variants of. false. */
  readonly ascii_folding?: boolean | null;
  /** None. */
  readonly stopwords?: Stopwords | null;
  /** None. */
  readonly stemmer?: Stemmer | null;
}

/** Parameters of a text index. */
export interface TextParams extends TextOptions {
  /** Whether `phrase` finds anything. false. */
  readonly phrase_matching?: boolean | null;
}

/** How BM25 makes the vector of a text. */
export interface Bm25Options extends TextOptions {
  /** How soon more occurrences of a token stop to count for more; 0: at once. */
  readonly k: number;
  /** How much the length of a document counts: 0 not at all, 1 in full. */
  readonly b: number;
  /** Tokens of a document of usual length, > 0. */
  readonly avgLen: number;
}
