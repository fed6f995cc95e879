/** Which statuses say that the node could not do what it was asked for. */

export type StatusProtocol = 'rest' | 'grpc';

/** UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS: what REST answers with 500 and more. */
const GRPC_FAILURES: ReadonlySet<number> = new Set([2, 13, 14, 15]);
/** With DEADLINE_EXCEEDED and UNIMPLEMENTED. Source: OpenTelemetry, RPC conventions. */
const GRPC_SPAN_ERRORS: ReadonlySet<number> = new Set([...GRPC_FAILURES, 4, 12]);

/** For people who read a log: whether the node could not. */
export function isFailure(protocol: StatusProtocol, status: number): boolean {
  return protocol === 'rest' ? status >= 500 : GRPC_FAILURES.has(status);
}

/** For collectors of traces: whether the server's span has failed, as their conventions have it. */
export function isSpanError(protocol: StatusProtocol, status: number): boolean {
  return protocol === 'rest' ? status >= 500 : GRPC_SPAN_ERRORS.has(status);
}
