/** The node that a tool asks: where it is, the key for it, and its answers without loss of digits. */

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import { RestClient, type RestUpload } from '../rest-client.js';
import { EXIT, ToolError, wrongArguments } from './tool.js';

/** For `parseArgs`. */
export const CONNECTION_OPTIONS = {
  url: { type: 'string' },
  'api-key-env': { type: 'string' },
  'api-key-file': { type: 'string' },
  'ca-cert': { type: 'string' },
  'client-cert': { type: 'string' },
  'client-key': { type: 'string' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
} as const;

export const CONNECTION_USAGE = `The node:
  --url <address>        of its REST port; without it TROUPE_URL, or http://localhost:6333
  --api-key-file <file>  a file with the key or token; without it the variable TROUPE_API_KEY
  --api-key-env <name>   another variable with the key or token
  --ca-cert <file>       certificates of the authorities to trust, as PEM
  --client-cert <file>   the certificate to show, as PEM, and with
  --client-key <file>    its private key
  --timeout <seconds>    how long to wait for an answer (60)
  --json                 what the node answers, for programs

Exit codes: 0 done, 1 refused or not found, 2 wrong arguments, 3 the node cannot be reached.
`;

export interface ConnectionValues {
  readonly url?: string | undefined;
  readonly 'api-key-env'?: string | undefined;
  readonly 'api-key-file'?: string | undefined;
  readonly 'ca-cert'?: string | undefined;
  readonly 'client-cert'?: string | undefined;
  readonly 'client-key'?: string | undefined;
  readonly timeout?: string | undefined;
}

/** The node did not do it. */
export class NodeRefusal extends ToolError {
  /** retryAfterMs: how long the node wants to be left alone; null: it does not say. */
  constructor(
    message: string,
    readonly status: number,
    readonly retryAfterMs: number | null,
  ) {
    super(message, EXIT.refused);
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_URL = 'http://localhost:6333';
const TIMEOUT_SECONDS = 60;
const CONNECTIONS = 8;

export class NodeConnection {
  constructor(
    /** For people: without a key. */
    readonly url: string,
    private readonly client: RestClient,
  ) {}

  /** `result` of the answer; integers beyond 2^53 are bigints. Errors: NodeRefusal; ToolError for a node that cannot be reached. */
  async result<Result>(method: string, path: string, body?: unknown): Promise<Result> {
    return (await this.answer(method, path, body)).result as Result;
  }

  /** As `result`, with all that stands beside it. */
  async answer(method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> {
    const sent = body === undefined ? undefined : typeof body === 'string' ? body : stringifyJson(body);
    const { headers, status, text } = await this.client.call(method, path, sent).catch((error: unknown) => this.#unreachable(error));
    if (status < 200 || status > 299) throw refusal(status, text, headers['retry-after']);
    return parseJson(text) as Readonly<Record<string, unknown>>;
  }

  /** As `result`; null for what is not there. */
  async found<Result>(method: string, path: string, body?: unknown): Promise<Result | null> {
    return this.result<Result>(method, path, body).catch((error: unknown) => {
      if (error instanceof NodeRefusal && error.status === 404) return null;
      throw error;
    });
  }

  /** Errors: as for `result`. */
  async download(path: string): Promise<IncomingMessage> {
    const response = await this.client.download(path).catch((error: unknown) => this.#unreachable(error));
    if (response.statusCode === 200) return response;
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    throw refusal(response.statusCode ?? 0, text, response.headers['retry-after']);
  }

  /** Errors: as for `result`. */
  async upload<Result>(path: string, upload: RestUpload): Promise<Result> {
    const { headers, status, text } = await this.client.upload('POST', path, upload).catch((error: unknown) => this.#unreachable(error));
    if (status < 200 || status > 299) throw refusal(status, text, headers['retry-after']);
    return (parseJson(text) as { result: Result }).result;
  }

  close(): void {
    this.client.close();
  }

  #unreachable(error: unknown): never {
    const { code, message } = error as NodeJS.ErrnoException;
    const isRefused = code === 'ECONNREFUSED';
    const help = `${isRefused ? '`troupe serve` starts a node, ' : ''}--url or TROUPE_URL names another one`;
    throw new ToolError(
      `${this.url} cannot be reached: ${isRefused ? 'nobody listens there' : message || code} (${help})`,
      EXIT.unreachable,
    );
  }
}

/** Opens a connection, lets `use` work with it, and closes it. */
export async function withNode<Result>(
  values: ConnectionValues,
  use: (node: NodeConnection) => Promise<Result>,
  environment: Environment = process.env,
): Promise<Result> {
  const node = openConnection(values, environment);
  try {
    return await use(node);
  } finally {
    node.close();
  }
}

/** Errors: ToolError for an address, a file or a variable that cannot be used. */
export function openConnection(values: ConnectionValues, environment: Environment): NodeConnection {
  const text = values.url ?? (environment.TROUPE_URL || DEFAULT_URL);
  const url = parsedUrl(text);
  if (url.username !== '' || url.password !== '')
    throw wrongArguments('--url: an address holds no key; use TROUPE_API_KEY or --api-key-file');
  const key = keyOf(values, environment);
  const isSecure = url.protocol === 'https:';
  const tls = isSecure ? tlsOf(values) : null;
  const client = new RestClient(
    {
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
      prefix: url.pathname.replace(/\/+$/, ''),
      headers: key === null ? {} : { 'api-key': key },
      tls,
      silenceMs: secondsOf('--timeout', values.timeout, TIMEOUT_SECONDS) * 1000,
    },
    CONNECTIONS,
  );
  return new NodeConnection(`${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`, client);
}

function parsedUrl(text: string): URL {
  const full = text.includes('://') ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw wrongArguments(`--url: '${text}' is no address such as ${DEFAULT_URL}`);
  return url;
}

/** Null: there is none. */
function keyOf({ 'api-key-env': variable, 'api-key-file': file }: ConnectionValues, environment: Environment): string | null {
  if (variable !== undefined && file !== undefined) throw wrongArguments('one of --api-key-env and --api-key-file');
  if (file !== undefined) {
    const key = fileOf('--api-key-file', file).trim();
    if (key === '') throw wrongArguments(`--api-key-file: ${file} is empty`);
    return key;
  }
  const key = environment[variable ?? 'TROUPE_API_KEY'] ?? '';
  if (key === '' && variable !== undefined) throw wrongArguments(`--api-key-env: the variable ${variable} is not set`);
  return key === '' ? null : key;
}

function tlsOf({ 'ca-cert': ca, 'client-cert': cert, 'client-key': key }: ConnectionValues) {
  if ((cert === undefined) !== (key === undefined)) throw wrongArguments('--client-cert and --client-key go together');
  return {
    ...(ca === undefined ? {} : { ca: fileOf('--ca-cert', ca) }),
    ...(cert === undefined ? {} : { cert: fileOf('--client-cert', cert) }),
    ...(key === undefined ? {} : { key: fileOf('--client-key', key) }),
  };
}

function fileOf(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw wrongArguments(`${option}: ${(error as Error).message}`);
  }
}

/** A positive number of seconds. Errors: ToolError. */
export function secondsOf(option: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const seconds = Number(text);
  if (!(seconds > 0 && seconds < 1e6)) throw wrongArguments(`${option}: '${text}' is no number of seconds`);
  return seconds;
}

/** Hints for statuses that a person can act on. */
const HINTS: Readonly<Record<number, string>> = {
  401: ' (TROUPE_API_KEY or --api-key-file gives the key)',
  403: ' (the key or token does not allow it)',
};

function refusal(status: number, text: string, retryAfter: string | string[] | undefined): NodeRefusal {
  const seconds = Number(retryAfter);
  return new NodeRefusal(`${problemOf(text)}${HINTS[status] ?? ''}`, status, seconds >= 0 ? seconds * 1000 : null);
}

/** The message of an answer that is no success. */
function problemOf(text: string): string {
  try {
    const { status } = JSON.parse(text) as { readonly status?: { readonly error?: string } };
    if (typeof status?.error === 'string') return status.error;
  } catch {
    // Some proxies answer with a page.
  }
  return text.trim().slice(0, 300) || 'the node answered with nothing';
}

/** A path of the API with its parts encoded: ``apiPath`/collections/${name}` ``. */
export function apiPath(texts: TemplateStringsArray, ...parts: readonly (string | number | bigint)[]): string {
  return texts.reduce((path, text, at) => path + encodeURIComponent(String(parts[at - 1])) + text);
}
