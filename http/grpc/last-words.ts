/** What clients of gRPC hear whose connections the server does not take. */

import { ENHANCE_YOUR_CALM, FRAME_HEAD_BYTES, GOAWAY, INADEQUATE_SECURITY, SETTINGS_FRAME } from '../../protocols/http2/frames.js';

export const WITHOUT_TLS_GRPC = lastFrames(INADEQUATE_SECURITY, 'this port takes connections with TLS only (service.enable_tls)');

export const TOO_MANY_GRPC = lastFrames(
  ENHANCE_YOUR_CALM,
  'too many connections are open (service.max_connections, service.max_connections_per_client)',
);

/** A server's first frame, and one that says why there are no others. Source: RFC 9113, sections 3.4 and 6.8. */
function lastFrames(code: number, reason: string): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(code, 4);
  return Buffer.concat([frame(SETTINGS_FRAME, Buffer.alloc(0)), frame(GOAWAY, Buffer.concat([head, Buffer.from(reason, 'latin1')]))]);
}

/** Of the connection, without flags. */
function frame(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  return Buffer.concat([head, payload]);
}
