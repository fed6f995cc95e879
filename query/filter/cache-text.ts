/** Text by which bitsets of equal filters and conditions are found again. */

/**
 * Equal for values that are equal, and different for others. Strings come after their length, so what they hold needs no escapes, and integers beyond
 * 2^53 end with `n`; names of members are those of the model, which hold no `:`. Null where it would be longer than about `lengthMax`: long lists are
 * not written out to the end. Pure.
 */
export function cacheText(value: object, lengthMax: number): string | null {
  const text = textOf(value, lengthMax);
  return text.length > lengthMax ? null : text;
}

/** Ends soon after it is longer than `left`. */
function textOf(value: unknown, left: number): string {
  switch (typeof value) {
    case 'string':
      return value.length > left ? value : `${value.length}"${value}`;
    case 'bigint':
      return `${value}n`;
    case 'object':
      if (value !== null)
        return Array.isArray(value) ? listText(value, left) : objectText(value as Readonly<Record<string, unknown>>, left);
      return 'null';
    default:
      return String(value);
  }
}

function listText(values: readonly unknown[], left: number): string {
  if (values.length === 0) return '[]';
  let text = '[';
  for (const value of values) {
    if (text.length > left) break;
    text += `${textOf(value, left - text.length)},`;
  }
  return `${text}]`;
}

/** Members are plain: a list of their names and values costs more than the text. */
function objectText(value: Readonly<Record<string, unknown>>, left: number): string {
  let text = '{';
  for (const name in value) {
    if (text.length > left) break;
    text += `${name}:${textOf(value[name], left - text.length)},`;
  }
  return `${text}}`;
}
