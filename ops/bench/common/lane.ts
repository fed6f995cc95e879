/** A connection of the load client that carries one request at a time. */

export type LaneDone = (answer: { readonly good: boolean; readonly bytes: Buffer; readonly bodyAt: number }) => void;

export interface Lane {
  /** Sends a request; calls back when its answer is there. */
  send(request: Buffer, done: LaneDone, fail: (error: Error) => void): void;
  close(): void;
}
