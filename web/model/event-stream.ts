/** Server-sent events, parsed from text as it comes. Source: WHATWG HTML, «Server-sent events». */

export interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

export class EventParser {
  /** Of the last event that had one; it goes with the next request. */
  lastId = '';
  #rest = '';
  #name = '';
  #id: string | null = null;
  #data: string[] = [];

  /** The events that are complete with this text. */
  push(text: string): StreamEvent[] {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const events: StreamEvent[] = [];
    for (const line of lines) {
      const event = this.#take(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (event !== null) events.push(event);
    }
    return events;
  }

  #take(line: string): StreamEvent | null {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#name = value;
    else if (field === 'id') this.#id = value;
    else if (field === 'data') this.#data.push(value);
    return null;
  }

  #end(): StreamEvent | null {
    const event = this.#data.length === 0 ? null : { name: this.#name === '' ? 'message' : this.#name, data: this.#data.join('\n') };
    if (this.#id !== null) this.lastId = this.#id;
    this.#name = '';
    this.#id = null;
    this.#data = [];
    return event;
  }
}
