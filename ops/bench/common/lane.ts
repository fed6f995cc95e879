/** A connection of the load client that carries one request at a time. */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { LoadAccess } from './jobs.js';

export interface LaneAnswer {
  readonly good: boolean;
  readonly bytes: Buffer;
  readonly bodyAt: number;
}

export type LaneDone = (answer: LaneAnswer) => void;

export interface Lane {
  /** Sends a request; calls back when its answer is there. */
  send(request: Buffer, done: LaneDone, fail: (error: Error) => void): void;
  close(): void;
}

/** The answer to a request, good or not. Rejects when the connection breaks. */
export function answerOn(lane: Lane, request: Buffer): Promise<LaneAnswer> {
  return new Promise((resolve, reject) => lane.send(request, resolve, reject));
}

/** Resolves when requests can be sent. */
export function openSocket(port: number, protocol: 'http/1.1' | 'h2', access: LoadAccess = {}): Promise<Socket> {
  return new Promise((opened, refuse) => {
    const host = '127.0.0.1';
    const ready = (): void => {
      socket.off('error', refuse);
      opened(socket);
    };
    const socket: Socket =
      access.ca === undefined ? connect(port, host, ready) : connectTls({ host, port, ca: access.ca, ALPNProtocols: [protocol] }, ready);
    socket.setNoDelay(true);
    socket.once('error', refuse);
  });
}
