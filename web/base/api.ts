/** Calls of the node's REST API, with the key that was entered. The key is never part of an address. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** An answer that is an error; `message` is the node's own. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface PageAnswer {
  readonly status: number;
  readonly text: string;
  readonly milliseconds: number;
}

const KEY = 'troupe.key';
const refusals = new Set<() => void>();
const keyChanges = new Set<() => void>();

/** The key or token that requests carry; empty for none. */
export function storedKey(): string {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? '';
}

/** Whether the key is kept when the browser is closed. */
export function isKeyRemembered(): boolean {
  return localStorage.getItem(KEY) !== null;
}

/** remember: keep the key when the browser is closed. */
export function storeKey(key: string, remember: boolean): void {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  if (key !== '') (remember ? localStorage : sessionStorage).setItem(KEY, key);
  for (const listener of keyChanges) listener();
}

/** Calls `listener` when another key is used from now on. */
export function onKeyChange(listener: () => void): void {
  keyChanges.add(listener);
}

/** Calls `listener` when the node refuses a request for its key. */
export function onRefusal(listener: () => void): () => void {
  refusals.add(listener);
  return () => refusals.delete(listener);
}

/** Headers that a request needs. */
export function headers(): Record<string, string> {
  const key = storedKey();
  return key === '' ? {} : { 'api-key': key };
}

/** The `result` of an answer. Throws `ApiError`. */
export async function call<Result>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Result> {
  const { status, text } = await send(method, path, body === undefined ? undefined : JSON.stringify(body), signal);
  if (status >= 400) throw new ApiError(status, errorOf(status, text));
  return (JSON.parse(text) as { result: Result }).result;
}

/** Any answer, as text. Throws `ApiError` with status 0 where the node cannot be reached. */
export async function send(method: string, path: string, body?: BodyInit, signal?: AbortSignal): Promise<PageAnswer> {
  const begun = performance.now();
  let response: Response;
  try {
    const init: RequestInit = { method, headers: headers(), cache: 'no-store' };
    if (body !== undefined) init.body = body;
    if (signal !== undefined) init.signal = signal;
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The node cannot be reached.');
  }
  const text = await response.text();
  if (response.status === 401) for (const listener of refusals) listener();
  return { status: response.status, text, milliseconds: performance.now() - begun };
}

/** Path of a collection, with what follows it. */
export function collectionPath(name: string, rest = ''): string {
  return `/collections/${encodeURIComponent(name)}${rest}`;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What an answer that is an error says. */
export function errorOf(status: number, text: string): string {
  try {
    const parsed = JSON.parse(text) as { status?: { error?: string } };
    if (parsed.status?.error) return parsed.status.error;
  } catch {
    // Some answers are plain text.
  }
  return text === '' ? `The node answered ${status}.` : text;
}
