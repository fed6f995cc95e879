/**
 * What changes on the node, as it tells it: one stream for all parts of the page. Read with `fetch`, since the key goes in a header. Where the
 * node refuses it (a token for some collections, too many clients), pages ask again and again instead.
 */

import { EventParser } from '../model/event-stream.js';
import { headers, onKeyChange } from './api.js';

/** What a part of the page shows. */
export interface Followed {
  /** Names of topics. */
  readonly topics: readonly string[];
  /** A collection; left out: all. */
  readonly group?: string;
}

interface Following extends Followed {
  readonly changed: () => void;
}

const PATH = '/telemetry/events';
const RETRY_MS = 2000;
/** After a refusal. */
const REFUSED_RETRY_MS = 60_000;
/** The stream stays for so long when nobody follows, as while one page makes way for another. */
const LINGER_MS = 3000;

const followers = new Set<Following>();
let connected = false;
let stop: AbortController | null = null;
let lastId = '';
let ending: ReturnType<typeof setTimeout> | undefined;

/** Calls `changed` when something of it has changed, and when the stream begins or breaks. The answer ends that. */
export function follow(followed: Followed, changed: () => void): () => void {
  const following = { ...followed, changed };
  followers.add(following);
  clearTimeout(ending);
  if (stop === null) begin();
  return () => {
    followers.delete(following);
    clearTimeout(ending);
    if (followers.size === 0) ending = setTimeout(end, LINGER_MS);
  };
}

/** Whether changes are told, so that nobody has to ask. */
export function isFollowing(): boolean {
  return connected;
}

// Another key may be refused, or see more.
onKeyChange(() => {
  lastId = '';
  if (stop === null) return;
  end();
  begin();
});

function begin(): void {
  const abort = new AbortController();
  stop = abort;
  void run(abort.signal);
}

function end(): void {
  stop?.abort();
  stop = null;
  connected = false;
}

async function run(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let pauseMs = RETRY_MS;
    try {
      const response = await fetch(PATH, { headers: { ...headers(), 'last-event-id': lastId }, cache: 'no-store', signal });
      if (response.ok && response.body !== null) await take(response.body, signal);
      else pauseMs = response.status >= 500 ? RETRY_MS : REFUSED_RETRY_MS;
    } catch {
      // The node is away, or the stream was ended here.
    }
    if (signal.aborted) return;
    if (connected) {
      connected = false;
      tellAll();
    }
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

async function take(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let begins = true;
  while (!signal.aborted) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const { data, name } of parser.push(decoder.decode(value, { stream: true }))) {
      const isResumed = name === 'hello' && (JSON.parse(data) as { resumed: boolean }).resumed;
      if (name === 'ready' || isResumed) {
        begins = false;
        connected = true;
        tellAll();
      } else if (!begins) tell(name, JSON.parse(data) as { groups?: readonly { group: string }[] });
    }
    if (parser.lastId !== '') lastId = parser.lastId;
  }
}

function tellAll(): void {
  for (const { changed } of [...followers]) changed();
}

function tell(topic: string, { groups = [] }: { readonly groups?: readonly { readonly group: string }[] }): void {
  for (const { changed, group, topics } of [...followers])
    if (topics.includes(topic) && (group === undefined || groups.some((one) => one.group === group))) changed();
}
