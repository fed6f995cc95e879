/** The code blocks of a page of the guide, each with the answer that the page shows for its last command. */

import assert from 'node:assert/strict';

export interface GuideBlock {
  readonly code: string;
  readonly answer: { readonly kind: 'json'; readonly value: unknown } | { readonly kind: 'text'; readonly text: string } | null;
}

/** A block `sh`, and the block `json` or `text` that follows it, if one does. */
export function guideBlocksOf(markdown: string): readonly GuideBlock[] {
  const blocks: GuideBlock[] = [];
  for (const [, kind, content] of markdown.matchAll(/^```(sh|json|text)\n([\s\S]*?)^```$/gm)) {
    const [text, last] = [content as string, blocks.at(-1)];
    if (kind === 'sh') blocks.push({ code: text, answer: null });
    else if (last === undefined || last.answer !== null) throw new Error(`an answer without a block before it: ${text}`);
    else if (kind === 'text') blocks[blocks.length - 1] = { ...last, answer: { kind: 'text', text: text.trim() } };
    else blocks[blocks.length - 1] = { ...last, answer: { kind: 'json', value: JSON.parse(text) } };
  }
  return blocks;
}

/** The last line is as the page shows it; what comes before, or is not shown, says no error. */
export function checkAnswer({ answer, code }: GuideBlock, printed: string): void {
  const lines = printed.split('\n').filter((line) => line !== '');
  const last = answer === null ? undefined : lines.pop();
  for (const line of lines.filter((text) => text.startsWith('{'))) {
    assert.equal((JSON.parse(line) as { status: unknown }).status, 'ok', `${code}\n${line}`);
  }
  if (answer?.kind === 'text') assert.equal(last, answer.text, code);
  if (answer?.kind === 'json') assert.deepEqual(shownIn(JSON.parse(last as string), answer.value), answer.value, code);
}

/** What of `value` is shown: of objects the keys of `shown`, of lists all. Keys that are missing stay missing. */
function shownIn(value: unknown, shown: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(shown)) return value.map((item, at) => (at < shown.length ? shownIn(item, shown[at]) : item));
  if (!isObject(value) || !isObject(shown)) return value;
  const kept = Object.entries(shown).filter(([key]) => Object.hasOwn(value, key));
  return Object.fromEntries(kept.map(([key, part]) => [key, shownIn(value[key], part)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
