/**
 * Load client, a process of its own so that its CPU is not the server's: raw keep-alive connections, requests prepared
 * beforehand, and no more reading of an answer than finding its end.
 */

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { openGrpc } from './grpc-lane.js';
import type { LoadAccess, LoadJob, LoadResult, ToLoad } from './jobs.js';
import { type Lane, type LaneDone, openSocket } from './lane.js';
import { quantile } from './quantile.js';
import { readRequests } from './requests.js';

let stopped = false;

process.on('message', (message: ToLoad) => {
  if (message.kind === 'stop') {
    stopped = true;
    return;
  }
  stopped = false;
  run(message).then(
    (result) => process.send?.({ ok: true, value: result }),
    (error: unknown) => process.send?.({ ok: false, error: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));

interface Run {
  readonly job: LoadJob;
  readonly requests: readonly Buffer[];
  readonly startedMs: number;
  next: number;
  done: number;
  errors: number;
  firstError: string;
  readonly latencies: number[];
  readonly errorLatencies: number[];
  readonly bodies: (string | undefined)[];
}

async function run(job: LoadJob): Promise<LoadResult> {
  const requests = readRequests(readFileSync(job.requestsFile));
  const connections = Array.from({ length: job.connections }, (_, at) => {
    const port = job.ports[at % job.ports.length] as number;
    return job.protocol === 'grpc' ? openGrpc(port, job.access) : open(port, job.access);
  });
  const lanes = await Promise.all(connections);
  const state: Run = {
    job,
    requests,
    startedMs: performance.now(),
    next: 0,
    done: 0,
    errors: 0,
    firstError: '',
    latencies: [],
    errorLatencies: [],
    bodies: new Array(requests.length),
  };
  await Promise.all(lanes.map((lane) => drive(lane, state)));
  const seconds = (performance.now() - state.startedMs) / 1000;
  for (const lane of lanes) lane.close();
  const sorted = Float64Array.from(state.latencies).sort();
  return {
    requests: state.done,
    seconds,
    errors: state.errors,
    firstError: state.firstError,
    errorsP99: quantile(Float64Array.from(state.errorLatencies).sort(), 0.99),
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    max: sorted[sorted.length - 1] ?? 0,
    bodies: state.bodies,
  };
}

async function open(port: number, access?: LoadAccess): Promise<Lane> {
  return restLane(await openSocket(port, 'http/1.1', access));
}

/** Whether another request is to be sent. */
function goesOn(state: Run): boolean {
  if (stopped || state.next >= state.job.requests) return false;
  return state.next < state.job.requestsMin || performance.now() - state.startedMs < state.job.seconds * 1000;
}

/** Sends one request after the other until the job is done. */
function drive(lane: Lane, state: Run): Promise<void> {
  return new Promise((done, refuse) => {
    const send = (): void => {
      if (!goesOn(state)) {
        done();
        return;
      }
      const { perSecond } = state.job;
      const earlyMs = perSecond === undefined ? 0 : state.startedMs + (1000 * state.next) / perSecond - performance.now();
      if (earlyMs > 0.5) {
        setTimeout(send, earlyMs);
        return;
      }
      const index = state.next++ % state.requests.length;
      const sentMs = performance.now();
      lane.send(
        state.requests[index] as Buffer,
        ({ good, bytes, bodyAt }) => {
          const tookMs = performance.now() - sentMs;
          state.latencies.push(tookMs);
          state.done++;
          if (!good) {
            state.errors++;
            state.errorLatencies.push(tookMs);
            if (state.firstError === '') state.firstError = bytes.toString('utf8').slice(0, 1000);
          }
          if (state.job.keepBodies && good && state.bodies[index] === undefined) state.bodies[index] = bytes.toString('utf8', bodyAt);
          send();
        },
        refuse,
      );
    };
    send();
  });
}

function restLane(socket: Socket): Lane {
  let pending: Buffer | null = null;
  let answered: LaneDone = () => {};
  let failed: (error: Error) => void = () => {};
  let closed = false;
  socket.on('data', (chunk: Buffer) => {
    const bytes: Buffer = pending === null ? chunk : Buffer.concat([pending, chunk]);
    const head = bytes.indexOf('\r\n\r\n');
    const size = head < 0 ? -1 : contentLength(bytes.toString('latin1', 0, head));
    if (size < 0 || bytes.length < head + 4 + size) {
      pending = bytes;
      return;
    }
    pending = null;
    // "HTTP/1.1 200": the status is all that is read of most answers.
    const good = bytes[9] === 0x32 && bytes[10] === 0x30 && bytes[11] === 0x30;
    answered({ good, bytes, bodyAt: head + 4 });
  });
  socket.on('error', (error) => failed(error));
  socket.on('close', () => {
    if (!closed) failed(new Error('the server closed a connection'));
  });
  return {
    send(request, done, fail) {
      answered = done;
      failed = fail;
      socket.write(request);
    },
    close() {
      closed = true;
      socket.destroy();
    },
  };
}

function contentLength(head: string): number {
  const match = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (match === null) throw new Error(`an answer without content-length: ${head.slice(0, 300)}`);
  return Number(match[1]);
}
