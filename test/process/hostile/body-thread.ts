/**
 * Makes absurd requests in a thread of its own: texts of tens of megabytes would keep the client's thread from its connections for a second, and the
 * node would seem late. It runs itself as that thread.
 */

import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { type AbsurdChoice, type AbsurdRequest, madeRequest } from './absurd.js';

export class AbsurdRequests {
  readonly #worker = new Worker(new URL(import.meta.url));
  readonly #waiting: ((request: AbsurdRequest) => void)[] = [];

  constructor() {
    this.#worker.on('message', ({ body, ...rest }: AbsurdRequest) => {
      this.#waiting.shift()?.({ ...rest, body: Buffer.from(body.buffer, body.byteOffset, body.length) });
    });
  }

  make(choice: AbsurdChoice): Promise<AbsurdRequest> {
    this.#worker.postMessage(choice);
    return new Promise((done) => this.#waiting.push(done));
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

if (!isMainThread) {
  parentPort?.on('message', (choice: AbsurdChoice) => {
    const made = madeRequest(choice);
    parentPort?.postMessage(made, [made.body.buffer as ArrayBuffer]);
  });
}
