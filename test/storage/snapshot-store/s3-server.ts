/**
 * An S3-compatible server in front of a folder, and what goes wrong with one. `s3rver` does the work, signatures included. It cannot give an
 * upload up or list uploads, so that is done here, over its folder.
 */

import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import S3rver from '@20minutes/s3rver';
import type { S3Settings } from '../../../storage/snapshot-store/s3.js';
import { temporaryFolder } from './support.js';

/** `s3rver` asks for DES, which today's libraries have only as triple DES: the same with three equal keys. */
const crypto = createRequire(import.meta.url)('node:crypto') as Record<'createCipheriv' | 'createDecipheriv', Cipher>;
type Cipher = (algorithm: string, key: Buffer, vector: Buffer) => unknown;
for (const name of ['createCipheriv', 'createDecipheriv'] as const) {
  const make = crypto[name];
  crypto[name] = (algorithm, key, vector) =>
    algorithm === 'des' ? make('des-ede3-cbc', Buffer.concat([key, key, key]), vector) : make(algorithm, key, vector);
}

const BUCKET = 'snapshots';
const KEY = 'S3RVER';

/** What becomes of a request instead of an answer; null: nothing. */
type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;

export class S3Server {
  /** Method and query of each request. */
  readonly requests: string[] = [];
  fault: Fault | null = null;
  /** Whether it lists uploads, as some servers do not. */
  listsUploads = true;

  /** A part that was on its way is written all the same. */
  private readonly givenUp = new Set<string>();

  private constructor(
    readonly folder: string,
    private readonly server: Server,
  ) {}

  static async start(t: TestContext): Promise<S3Server> {
    const folder = temporaryFolder(t);
    const options = { directory: folder, silent: true, vhostBuckets: false, configureBuckets: [{ name: BUCKET }] };
    const objects = new S3rver(options);
    await objects.configureBuckets();
    const ofObjects = objects.callback();
    // It signs the path of a bucket without the slash that the SDK ends it with.
    const ofBuckets = new S3rver({ ...options, allowMismatchedSignatures: true }).callback();
    const server = createServer((request, response) => {
      if (here.handle(request, response)) return;
      if (/^\/[^/]*\/?(\?|$)/.test(request.url ?? '')) ofBuckets(request, response);
      else ofObjects(request, response);
    });
    const here = new S3Server(folder, server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return here;
  }

  get settings(): S3Settings {
    const { port } = this.server.address() as AddressInfo;
    return { bucket: BUCKET, region: 'eu-central-1', accessKey: KEY, secretKey: KEY, endpointUrl: `http://127.0.0.1:${port}` };
  }

  /** Ids of uploads that are neither finished nor given up. */
  uploads(): string[] {
    const all = existsSync(this.uploadsFolder) ? readdirSync(this.uploadsFolder) : [];
    return all.filter((id) => !this.givenUp.has(id));
  }

  /** Makes an upload look as if it had begun so long ago. */
  age(uploadId: string, ms: number): void {
    const then = new Date(Date.now() - ms);
    utimesSync(join(this.uploadsFolder, uploadId, 'key'), then, then);
  }

  /** Makes so many objects more that are like one of the bucket. */
  multiply(key: string, count: number, keyOf: (number: number) => string): void {
    const of = (name: string, part: string) => join(this.folder, BUCKET, `${name}._S3rver_${part}`);
    for (let number = 0; number < count; number++)
      for (const part of ['object', 'object.md5', 'metadata.json']) copyFileSync(of(key, part), of(keyOf(number), part));
  }

  private get uploadsFolder(): string {
    return join(this.folder, BUCKET, '._S3rver_uploads');
  }

  private handle(request: IncomingMessage, response: ServerResponse): boolean {
    const url = new URL(request.url ?? '/', 'http://s3');
    this.requests.push(`${request.method} ${url.search}`);
    if (this.fault?.(request, response) === true) return true;
    const uploadId = url.searchParams.get('uploadId');
    if (request.method === 'DELETE' && uploadId !== null) {
      this.givenUp.add(uploadId);
      response.writeHead(204).end();
      return true;
    }
    if (request.method === 'GET' && url.searchParams.has('uploads') && this.listsUploads) {
      response.writeHead(200, { 'content-type': 'application/xml' }).end(this.listing());
      return true;
    }
    return false;
  }

  private listing(): string {
    const entries = this.uploads().map((id) => {
      const keyFile = join(this.uploadsFolder, id, 'key');
      const initiated = statSync(keyFile).mtime.toISOString();
      return `<Upload><Key>${readFileSync(keyFile, 'utf8')}</Key><UploadId>${id}</UploadId><Initiated>${initiated}</Initiated></Upload>`;
    });
    return `<?xml version="1.0"?><ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${entries.join('')}</ListMultipartUploadsResult>`;
  }
}

/** An answer with an error as S3 has it, when the request has come: a connection that closes before says nothing. */
export function s3Error(response: ServerResponse, status: number, code: string): true {
  response.req.on('end', () => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
  });
  response.req.resume();
  return true;
}
