/** What a client of gRPC hears that speaks no TLS where it has to. */

import { FRAME_HEAD_BYTES, GOAWAY, INADEQUATE_SECURITY, SETTINGS_FRAME } from '../../protocols/http2/frames.js';

const REASON = Buffer.from('this port takes connections with TLS only (service.enable_tls)', 'latin1');

/** A server's first frame, and one that says why there are no others. Source: RFC 9113, sections 3.4 and 6.8. */
export const WITHOUT_TLS_GRPC: Buffer = Buffer.concat([frame(SETTINGS_FRAME, Buffer.alloc(0)), frame(GOAWAY, goAway())]);

function goAway(): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(INADEQUATE_SECURITY, 4);
  return Buffer.concat([head, REASON]);
}

/** Of the connection, without flags. */
function frame(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  return Buffer.concat([head, payload]);
}
