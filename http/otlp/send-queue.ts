/** What waits to be sent to a collector, and when: decisions without a clock or a network. */

/** Told by the collector's answer. Source: OTLP 1.x, «OTLP/HTTP response»: only these statuses are worth another try. */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const RETRY_MS_MIN = 1000;
const RETRY_MS_MAX = 30_000;

/** Items that wait, the oldest first. Beyond `itemsMax` the newest ones are lost: what is sent belongs together more often then. */
export class SendQueue<Item> {
  #items: Item[] = [];
  lost = 0;

  constructor(
    private readonly itemsMax: number,
    readonly batchMax: number,
  ) {}

  get length(): number {
    return this.#items.length;
  }

  add(items: readonly Item[]): void {
    const room = Math.max(0, this.itemsMax - this.#items.length);
    this.#items.push(...items.slice(0, room));
    this.lost += Math.max(0, items.length - room);
  }

  /** The next batch, which stays until `done`. */
  batch(): readonly Item[] {
    return this.#items.slice(0, this.batchMax);
  }

  /** The first items are sent, or lost. */
  done(count: number, areLost: boolean): void {
    this.#items.splice(0, count);
    if (areLost) this.lost += count;
  }
}

/** status: of the answer; null: there was none. `again` after so many milliseconds. */
export type AfterSend = { readonly kind: 'sent' } | { readonly kind: 'again'; readonly delayMs: number } | { readonly kind: 'refused' };

/** failures: tries of this batch before. retryAfterSec: of the answer, null: it has none. random: in [0, 1). */
export function afterSend(status: number | null, failures: number, retryAfterSec: number | null, random: number): AfterSend {
  if (status !== null && status >= 200 && status < 300) return { kind: 'sent' };
  if (status !== null && !AGAIN.has(status)) return { kind: 'refused' };
  const backoffMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** failures) * (0.5 + random / 2);
  return { kind: 'again', delayMs: Math.min(RETRY_MS_MAX, Math.max(backoffMs, (retryAfterSec ?? 0) * 1000)) };
}
