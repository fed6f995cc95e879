/** Text by which bitsets of equal filters and conditions are found again. */

/**
 * Equal for values that are equal, and different for others: as JSON, but for integers beyond 2^53, which end with `n`. Null where it would be longer
 * than about `lengthMax`: long lists are not written out to the end. Pure.
 */
export function cacheText(value: object, lengthMax: number): string | null {
  const text = textOf(value, lengthMax);
  return text.length > lengthMax ? null : text;
}

/** Ends soon after it is longer than `left`. */
function textOf(value: unknown, left: number): string {
  switch (typeof value) {
    case 'string':
      return value.length > left ? value : JSON.stringify(value);
    case 'bigint':
      return `${value}n`;
    case 'object':
      if (value !== null) return Array.isArray(value) ? listText(value, left) : objectText(value, left);
      return 'null';
    default:
      return String(value);
  }
}

function listText(values: readonly unknown[], left: number): string {
  let text = '[';
  for (const value of values) {
    if (text.length > left) break;
    text += `${textOf(value, left - text.length)},`;
  }
  return `${text}]`;
}

function objectText(value: object, left: number): string {
  let text = '{';
  for (const [name, member] of Object.entries(value)) {
    if (text.length > left) break;
    text += `${JSON.stringify(name)}:${textOf(member, left - text.length)},`;
  }
  return `${text}}`;
}
