/** One stream of an HTTP/2 connection, as the server sees it. */

/** Who gets the rest of a request, once its header has come. */
export interface StreamHandler {
  /** bytes: a part of the body, in memory that is only lent. */
  data(bytes: Buffer): void;
  /** The request is whole. */
  end(): void;
  /** The client has given the request up, or is gone: nobody reads an answer. */
  cancelled(): void;
}

export interface Http2Stream {
  readonly id: number;
  handler: StreamHandler;
  /** Bytes that the client may still send before it hears of more. */
  receiveWindow: number;
  /** Bytes that came since the client last heard of more. */
  unacknowledged: number;
  /** Bytes of the body that have not come yet, if the request says how long its body is. */
  bodyLeft: number | null;
  /** Bytes that may be sent; below 0 after the client has lowered the initial window. */
  sendWindow: number;
  /** The client has sent all of its request. */
  requestEnded: boolean;
  /** Neither side uses the stream any more. */
  closed: boolean;
  /** What waits for the client's windows, in order. */
  readonly waiting: Uint8Array[];
  /** The fields that end the stream after what waits; null while the answer goes on. */
  lastBlock: Uint8Array | null;
}

export function newStream(id: number, receiveWindow: number, sendWindow: number, handler: StreamHandler): Http2Stream {
  return {
    id,
    handler,
    receiveWindow,
    unacknowledged: 0,
    bodyLeft: null,
    sendWindow,
    requestEnded: false,
    closed: false,
    waiting: [],
    lastBlock: null,
  };
}

/** Takes what comes and forgets it. */
export const NO_HANDLER: StreamHandler = { data: () => {}, end: () => {}, cancelled: () => {} };
