/** A value that is entered in a form. */

/** Whole numbers and true or false are meant as such, unless they stand in quotes; everything else is a text. */
export function literal(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^-?\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  return text.replace(/^"(.*)"$/, '$1');
}
