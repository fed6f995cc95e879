/** Chooses the coding of an answer from what the client accepts. Source: RFC 9110, section 12.5.3. */

import type { Coding } from '../../context/codings.js';

const ITEM = /^[ \t]*([\w!#$%&'*+.^`|~-]+)[ \t]*(?:;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$/i;

/** accepted: the header. offered: the first is chosen of those that the client likes alike. Null: the answer goes as it is. */
export function chosenCoding(accepted: string, offered: readonly Coding[]): Coding | null {
  const qualities = new Map<string, number>();
  for (const item of accepted.toLowerCase().split(',')) {
    const [, name, quality] = ITEM.exec(item) ?? [];
    if (name !== undefined) qualities.set(name === 'x-gzip' ? 'gzip' : name, quality === undefined ? 1 : Number(quality));
  }
  const others = qualities.get('*') ?? 0;
  let chosen: Coding | null = null;
  let best = qualities.get('identity') ?? 0;
  for (const coding of offered) {
    const quality = qualities.get(coding) ?? others;
    // As good as the plain answer is better: whoever names a coding wants it.
    if (quality === 0 || quality < best || (chosen !== null && quality === best)) continue;
    chosen = coding;
    best = quality;
  }
  return chosen;
}
