/** Fetches an archive from a URL into a file. `address-rules.ts` decides which addresses may be asked (Fetch-U1 to Fetch-U3). */

import type { ClientRequest, IncomingMessage } from 'node:http';
import type { LookupFunction } from 'node:net';
import { TroupeError } from '../../protocols/errors.js';
import { dns, http, https } from '../../protocols/late-modules.js';
import { type AllowedAddresses, closedRangeOf, isListed, plainHost } from './address-rules.js';
import { cancelledBy, spoolToFile, throwIfEnded } from './spool.js';

export interface FetchOrder {
  /** `http:` or `https:`. */
  readonly url: URL;
  /** Is made; its folder is there. */
  readonly file: string;
  /** Is sent to the origin of `url` alone; null: none. */
  readonly apiKey: string | null;
  /** Bytes of the disk that must stay free. */
  readonly freeBytesMin: number;
}

export interface FetchRules {
  /** Whether keys are set: addresses that are not public are refused then. Otherwise they are taken, with a warning. */
  readonly guarded: boolean;
  /** `service.snapshot_url_allow`. */
  readonly allowed: AllowedAddresses;
  /** The hosts of all peers, this node's own among them: names or addresses, without ports. */
  readonly peers: readonly string[];
}

export interface FetchPorts {
  /** For the log. */
  readonly warn: (message: string, facts: Readonly<Record<string, string>>) => void;
  /** Addresses of a host name; default: the system's. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  /** Without a byte for so long, the call fails; default one minute. */
  readonly silenceMs?: number;
}

const REDIRECTS_MAX = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const SILENCE_MS = 60_000;

/**
 * Result: the number of bytes in `file`. On any error there is no file. Errors: `forbidden` for an address that is refused; `wrongInput` for an
 * answer other than 200; `badRequest` when the host cannot be reached, says nothing more, or breaks off; `outOfDisk`; `unavailable` when the
 * signal ends it.
 */
export async function fetchArchive(order: FetchOrder, rules: FetchRules, ports: FetchPorts, signal: AbortSignal): Promise<number> {
  const { apiKey, file, freeBytesMin } = order;
  const shown = shownUrl(order.url);
  let url = order.url;
  for (let redirects = 0; ; redirects++) {
    throwIfEnded(signal);
    const addresses = await checkedAddresses(url, redirects > 0, rules, ports, signal);
    const call = new ArchiveCall(url, addresses, url.origin === order.url.origin ? apiKey : null, ports.silenceMs ?? SILENCE_MS, signal);
    try {
      const answer = await call.answer();
      const status = answer.statusCode ?? 0;
      if (REDIRECTS.has(status) && answer.headers.location !== undefined) {
        if (redirects === REDIRECTS_MAX) throw failed(shown, `it has redirected ${redirects + 1} times, and ${REDIRECTS_MAX} are followed`);
        url = redirectTarget(answer.headers.location, url, shown);
        continue;
      }
      if (status !== 200) {
        throw new TroupeError(
          'wrongInput',
          `Failed to download tar from ${shown}: status - ${status} ${http().STATUS_CODES[status] ?? ''}`.trim(),
        );
      }
      const encoding = answer.headers['content-encoding'];
      if (encoding !== undefined && encoding !== 'identity') {
        throw failed(shown, `the answer is encoded as ${encoding}, which was not asked for: give the address of the plain file`);
      }
      return await spoolToFile(answer, file, { expectedBytes: lengthOf(answer), freeBytesMin, signal });
    } catch (error) {
      if (signal.aborted) throw cancelledBy(signal);
      if (error instanceof TroupeError) throw error;
      throw call.isSilent ? failed(shown, 'nothing more has come from there for too long: try again', error) : unreached(shown, error);
    } finally {
      call.end();
    }
  }
}

/** One request on a connection of its own, to an address that was checked (Fetch-U2). */
class ArchiveCall {
  isSilent = false;
  private readonly request: ClientRequest;
  private readonly answered: Promise<IncomingMessage>;

  constructor(url: URL, addresses: readonly string[], apiKey: string | null, silenceMs: number, signal: AbortSignal) {
    const { Agent, request } = url.protocol === 'https:' ? https() : http();
    const headers = {
      accept: '*/*',
      'accept-encoding': 'identity',
      'user-agent': 'troupe',
      ...(apiKey === null ? {} : { 'api-key': apiKey }),
    };
    const auth = credentialsOf(url);
    // An agent of its own goes through no proxy: it would resolve the name itself.
    const options = {
      agent: new Agent({ keepAlive: false }),
      headers,
      lookup: pinnedTo(addresses),
      signal,
      timeout: silenceMs,
      ...(auth === null ? {} : { auth }),
    };
    this.request = request({
      ...options,
      protocol: url.protocol,
      hostname: bare(url.hostname),
      port: url.port,
      path: url.pathname + url.search,
    });
    this.request.on('timeout', () => {
      this.isSilent = true;
      this.end();
    });
    this.answered = new Promise((resolve, reject) => {
      this.request.once('response', resolve);
      // Later ones are the answer's.
      this.request.on('error', reject);
    });
    this.request.end();
  }

  answer(): Promise<IncomingMessage> {
    return this.answered;
  }

  end(): void {
    this.request.destroy();
  }
}

/** The addresses of a URL's host. Errors: `forbidden` when one of them is refused (Fetch-U1); `badRequest` when the name has none. */
async function checkedAddresses(
  url: URL,
  isRedirect: boolean,
  { allowed, guarded, peers }: FetchRules,
  { resolve = systemAddresses, warn }: FetchPorts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = plainHost(url.hostname);
  const addresses = await beforeEnd(resolve(host), signal).catch((error: unknown) => {
    throw signal.aborted ? cancelledBy(signal) : unreached(shownUrl(url), error);
  });
  if (addresses.length === 0) throw failed(shownUrl(url), 'its host has no address');
  const isPeer = (address: string) => peers.some((peer) => [host, address].includes(plainHost(peer)));
  for (const address of addresses) {
    const range = closedRangeOf(address);
    if (range === null || isListed(host, address, allowed) || isPeer(address)) continue;
    if (guarded) {
      const way = isRedirect ? 'a redirect leads to ' : '';
      const detail =
        `${way}${host}, which has an address that is not public (${range}): use a public one, or have the host, the address or its ` +
        'network added to `service.snapshot_url_allow`';
      throw new TroupeError('forbidden', detail);
    }
    warn('an archive is fetched from an address that is not public; with API keys it would have to be in `service.snapshot_url_allow`', {
      host,
      address,
      range,
    });
    break;
  }
  return addresses;
}

async function systemAddresses(host: string): Promise<string[]> {
  const found = await dns().lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/** Answers with these addresses, whatever is asked for. */
function pinnedTo(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_host, options, callback) => {
    if (options.all === true) callback(null, found);
    else callback(null, found[0]?.address ?? '', found[0]?.family);
  };
}

/** A result, or the signal's end before it: the system's resolver cannot be stopped. */
async function beforeEnd<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const ended = new Promise<never>((_, reject) => {
    onAbort = () => reject(cancelledBy(signal));
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, ended]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function redirectTarget(location: string, from: URL, shown: string): URL {
  let url: URL;
  try {
    url = new URL(location, from);
  } catch (error) {
    throw failed(shown, 'it redirects to what is no URL', error);
  }
  if (url.protocol === 'http:' || url.protocol === 'https:') return url;
  throw failed(shown, `it redirects to a URL of the scheme ${url.protocol.slice(0, -1)}, and http and https are followed`);
}

/** Null where the answer does not say it. */
function lengthOf(answer: IncomingMessage): number | null {
  const text = answer.headers['content-length'] ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Without a name and a password, and without what a query may hold, such as a signature: for messages and the log. */
function shownUrl({ origin, pathname, search }: URL): string {
  return `${origin}${pathname}${search === '' ? '' : '?…'}`;
}

/** `name:password`; null: none. */
function credentialsOf({ password, username }: URL): string | null {
  if (username === '' && password === '') return null;
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    return `${username}:${password}`;
  }
}

function unreached(shown: string, error: unknown): TroupeError {
  const { code, message } = error as NodeJS.ErrnoException;
  return failed(
    shown,
    `the host cannot be reached, or has broken off (${code ?? message}): check the address, and that this node can get there`,
    error,
  );
}

function failed(shown: string, why: string, cause?: unknown): TroupeError {
  return new TroupeError('badRequest', `Failed to download tar from ${shown}: ${why}`, { cause });
}
