/** ASCII folding: letters as the ASCII letters they are variants of. */

/** Letters that Unicode does not decompose, by what they fold to. */
const LETTERS: { readonly [folded: string]: string } = {
  A: 'Ⱥ',
  AE: 'Æ',
  B: 'ɃƁƂ',
  C: 'ȻƇ',
  D: 'ÐĐƉƊƋ',
  E: 'ƎɆ',
  F: 'Ƒ',
  G: 'ǤƓ',
  H: 'ĦⱧ',
  I: 'ƗƖ',
  J: 'Ɉ',
  K: 'ƘⱩ',
  L: 'ŁȽⱠⱢ',
  N: 'ƝŊ',
  O: 'ØƟƆ',
  OE: 'Œ',
  P: 'ƤⱣ',
  R: 'ɌⱤ',
  SS: 'ẞ',
  T: 'ŦƬƮȾ',
  TH: 'Þ',
  U: 'Ʉ',
  V: 'Ʋ',
  W: 'Ⱳ',
  Y: 'ƳɎ',
  Z: 'ƵȤⱫ',
  a: 'ɐɑⱥ',
  ae: 'æ',
  b: 'ƀɓƃ',
  c: 'ȼƈɕ',
  d: 'ðđɖɗƌ',
  e: 'ǝɇəɛ',
  f: 'ƒ',
  g: 'ǥɠɡ',
  h: 'ħɦⱨ',
  i: 'ıɨɩ',
  j: 'ɉȷ',
  k: 'ƙⱪ',
  l: 'łƚⱡɫ',
  m: 'ɱ',
  n: 'ŋɲƞ',
  o: 'øɵɔ',
  oe: 'œ',
  p: 'ƥᵽ',
  q: 'ɋʠ',
  r: 'ɍɽ',
  s: 'ʂȿ',
  ss: 'ß',
  t: 'ŧƭʈⱦ',
  th: 'þ',
  u: 'ʉ',
  v: 'ʋⱴ',
  w: 'ⱳ',
  y: 'ƴɏ',
  z: 'ƶȥⱬʐ',
};
const folded = new Map(
  Object.entries(LETTERS).flatMap(([ascii, letters]) => [...letters].map((letter): [string, string] => [letter, ascii])),
);
const FOLDED_MAX = 20_000;

/** The text with every letter folded that has an ASCII form; others (`й`, `ü` within Cyrillic or Greek too) stay as they are. */
export function foldToAscii(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : Array.from(text, foldLetter).join('');
}

function foldLetter(letter: string): string {
  if (letter < '\x80') return letter;
  const known = folded.get(letter);
  if (known !== undefined) return known;
  const base = letter.normalize('NFKD').replace(/\p{M}/gu, '');
  const result = base !== '' && /^[\0-\x7f]*$/.test(base) ? base : letter;
  if (folded.size < FOLDED_MAX) folded.set(letter, result);
  return result;
}
