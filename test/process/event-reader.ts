/** Follows server-sent events of a node, and waits for one. */

import assert from 'node:assert/strict';
import { EventParser } from '../../web/model/event-stream.js';

export interface ReadGroup {
  readonly group: string;
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

const NO_GROUPS: readonly ReadGroup[] = [{ group: '', items: [] }];

export class EventReader {
  /** Names of all events so far. */
  readonly names: string[] = [];
  readonly #parser = new EventParser();
  readonly #read: { readonly name: string; readonly groups: readonly ReadGroup[] }[] = [];

  private constructor(
    private readonly reader: ReadableStreamDefaultReader<Uint8Array>,
    private readonly abort: AbortController,
  ) {}

  static async open(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
    const abort = new AbortController();
    const response = await fetch(url, { headers, signal: abort.signal });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    return new EventReader((response.body as ReadableStream<Uint8Array>).getReader(), abort);
  }

  get lastId(): string {
    return this.#parser.lastId;
  }

  /**
   * Resolves when an event of this name has come, now or before, one of whose groups is it; events without groups have an empty one. Rejects when
   * the stream ends before.
   */
  async until(name: string, isIt: (group: ReadGroup) => boolean): Promise<void> {
    for (let at = 0; ; at++) {
      while (at === this.#read.length) await this.#readMore();
      const event = this.#read[at];
      if (event?.name === name && event.groups.some(isIt)) return;
    }
  }

  async #readMore(): Promise<void> {
    const { done, value } = await this.reader.read();
    assert.ok(!done, `the stream has ended: ${this.names.join(', ')}`);
    for (const { data, name } of this.#parser.push(Buffer.from(value).toString())) {
      const { groups = NO_GROUPS } = JSON.parse(data) as { groups?: ReadGroup[] };
      this.names.push(name);
      this.#read.push({ name, groups });
    }
  }

  close(): void {
    this.abort.abort();
  }
}
