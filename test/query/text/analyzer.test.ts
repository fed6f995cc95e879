import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { STEMMER_LANGUAGES, STOPWORD_LANGUAGES, type TextOptions, TOKENIZERS } from '../../../protocols/model/text.js';
import { analyzerFor } from '../../../query/text/analyzer.js';
import { stemmerOf } from '../../../query/text/stemmers.js';
import { languageStopwords } from '../../../query/text/stopwords.js';
import { seeded } from '../property.js';

const CASES: readonly [TextOptions, string, string][] = [
  [{}, 'The Quick brown-fox, naïve café 12', 'the quick brown fox naïve café 12'],
  [{ lowercase: false }, 'The Quick', 'The Quick'],
  [{ tokenizer: 'whitespace' }, ' a lazy,  cat-fish\n', 'a lazy, cat-fish'],
  [{ tokenizer: 'prefix' }, 'hey you', 'h he hey y yo you'],
  [{ tokenizer: 'prefix', min_token_len: 2, max_token_len: 5 }, 'Quickest a fox', 'qu qui quic quick fo fox'],
  [{ tokenizer: 'prefix', min_token_len: 3, max_token_len: 2 }, 'quick', ''],
  [{ tokenizer: 'multilingual' }, '今天天气很好 hello世界', '今天 天气 很好 hello 世界'],
  [{ tokenizer: 'multilingual' }, 'สวัสดีครับ naïve-fox', 'สวัสดี ครับ naïve fox'],
  [{ tokenizer: 'word' }, '今天天气很好', '今天天气很好'],
  [{ min_token_len: 4, max_token_len: 6 }, 'the quick jumping brown fox', 'quick brown'],
  [{ min_token_len: 1, max_token_len: 1 }, '\u{20000} \u{20000}a é', '\u{20000} é'],
  [{ ascii_folding: true }, 'naïve Øre straße Æsir Москва йод ＡＢ', 'naive ore strasse aesir москва йод ab'],
  [{ stopwords: 'english' }, "The dog, a fox and don't", 'dog fox'],
  [{ stopwords: { languages: ['german'], custom: ['FOX', 'Quick'] } }, 'der quick Fox und Hund', 'hund'],
  [{ stopwords: { custom: ['été'] }, ascii_folding: true }, 'Été ete chaud', 'chaud'],
  [{ stemmer: { type: 'snowball', language: 'english' } }, 'running runner runs generously his', 'run runner run generous his'],
  [{ stemmer: { type: 'snowball', language: 'english' }, max_token_len: 3 }, 'running', 'run'],
  [{ stopwords: 'english', stemmer: { type: 'snowball', language: 'english' } }, 'The foxes were running', 'fox run'],
];

for (const [options, text, tokens] of CASES) {
  test(`${JSON.stringify(options)} makes "${tokens}" of "${text}"`, () => {
    assert.deepEqual(
      analyzerFor(options).document(text),
      tokens.split(' ').filter((token) => token !== ''),
    );
  });
}

test('a query is cut like a document, but with prefixes only to the longest one', () => {
  const prefix = analyzerFor({ tokenizer: 'prefix', min_token_len: 2, max_token_len: 5 });
  assert.deepEqual(prefix.query('Quickest a fox'), ['quick', 'fox']);
  assert.deepEqual(prefix.document('x'.repeat(10_000)).length, 4);
  assert.equal(analyzerFor({ tokenizer: 'prefix' }).document('x'.repeat(10_000)).length, 255);
  assert.deepEqual(analyzerFor({}).query('Fox, quick'), ['fox', 'quick']);
});

test('a phrase is its words next to each other', () => {
  const plain = analyzerFor({ stopwords: 'english' });
  const holds = (text: string, phrase: string): boolean => plain.holdsPhrase(text, plain.query(phrase));
  assert.ok(holds('The QUICK brown fox', 'quick Brown'));
  assert.ok(holds('a fox of the wood', 'fox wood'));
  assert.ok(!holds('quick red fox', 'quick fox'));
  assert.ok(!holds('fox', 'fox fox'));
  assert.ok(!holds('fox', ''));
  const prefix = analyzerFor({ tokenizer: 'prefix', min_token_len: 2 });
  assert.ok(prefix.holdsPhrase('quick brown fox', prefix.query('brow fo')));
  assert.ok(!prefix.holdsPhrase('quick brown fox', prefix.query('quick fox')));
});

test('letters have one spelling, and halves of surrogate pairs are no letters', () => {
  assert.deepEqual(analyzerFor({}).document('cafe\u0301'), ['café']);
  assert.deepEqual(analyzerFor({ tokenizer: 'whitespace' }).document('a\ud800b'), ['a\ufffdb']);
});

test('what a text holds is found with the text itself, whatever the options', () => {
  const options: fc.Arbitrary<TextOptions> = fc.record({
    tokenizer: fc.constantFrom(...TOKENIZERS),
    min_token_len: fc.option(fc.nat(3), { nil: undefined }),
    max_token_len: fc.option(fc.integer({ min: 2, max: 9 }), { nil: undefined }),
    lowercase: fc.boolean(),
    ascii_folding: fc.boolean(),
    stopwords: fc.option(fc.constantFrom(...STOPWORD_LANGUAGES), { nil: null }),
    stemmer: fc.option(
      fc.constantFrom(...STEMMER_LANGUAGES).map((language) => ({ type: 'snowball' as const, language })),
      { nil: null },
    ),
  });
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('今天天气很好', 'The quick brown foxes', 'Être où l’été', 'ΟΔΟΣ İstanbul'),
  );
  fc.assert(
    fc.property(options, text, (one, written) => {
      const analyzer = analyzerFor(one);
      const document = new Set(analyzer.document(written));
      const query = analyzer.query(written);
      assert.ok(query.every((token) => document.has(token)));
      assert.equal(analyzer.holdsPhrase(written, query), query.length > 0);
    }),
    seeded(1500),
  );
});

test('every language has stop words and a stemmer', () => {
  for (const language of STOPWORD_LANGUAGES) assert.ok(languageStopwords(language).length > 50, language);
  for (const language of STEMMER_LANGUAGES) assert.equal(typeof stemmerOf(language)('x'), 'string', language);
  assert.ok(languageStopwords('slovene').includes('ali') && languageStopwords('english').includes('a'));
  const stems = {
    english: ['generously', 'generous'],
    german: ['häusern', 'haus'],
    russian: ['важная', 'важн'],
    greek: ['αυτοκίνητα', 'αυτοκινητ'],
  } as const;
  for (const [language, [word, stem]] of Object.entries(stems)) assert.equal(stemmerOf(language as 'english')(word), stem, language);
});

test('a text without spaces is no word to stem', () => {
  for (const language of ['english', 'turkish', 'finnish'] as const) {
    const { document } = analyzerFor({ tokenizer: 'whitespace', stemmer: { type: 'snowball', language } });
    const word = 'ingational'.repeat(100_000);
    assert.deepEqual(document(`${word}ings`), [`${word}ings`]);
  }
  const { document } = analyzerFor({ tokenizer: 'word', stemmer: { type: 'snowball', language: 'english' } });
  assert.deepEqual(document('swimming'), ['swim']);
});

test('a long text without spaces is cut into words as a short one is, and as fast', () => {
  const { document } = analyzerFor({ tokenizer: 'multilingual' });
  const started = performance.now();
  const words = document('日本語'.repeat(50_000));
  assert.deepEqual([...new Set(words)], document('日本語'));
  assert.equal(words.length, 50_000);
  // Half a minute where each word took longer than the one before it.
  assert.ok(performance.now() - started < 10_000);
});
