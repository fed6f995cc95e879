/** The few things that came last: clients send the same again and again. */

/** Looking through them has to cost less than what it spares. */
const LATEST_MAX = 8;

export class Latest<Item> {
  /** In no order. */
  readonly items: Item[] = [];
  private oldest = 0;

  /** In the place of the one that came first, if there is no room. */
  add(item: Item): void {
    this.items[this.oldest] = item;
    this.oldest = (this.oldest + 1) % LATEST_MAX;
  }
}
