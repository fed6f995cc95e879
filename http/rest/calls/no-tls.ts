/** What a client of REST hears that speaks no TLS where it has to. */

import { errorBody } from '../../context/answer.js';

const BODY = errorBody({ code: 'wrongInput', detail: 'this port takes requests with TLS only (service.enable_tls): use https://' }, 0);

export const WITHOUT_TLS_REST: Buffer = Buffer.concat([
  Buffer.from(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\nConnection: close\r\n\r\n`,
    'latin1',
  ),
  BODY,
]);
