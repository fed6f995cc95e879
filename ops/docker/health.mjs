/**
 * The health check of the container image, which has no curl: exit code 0 if the node of this container is alive. It asks the REST port of
 * SERVICE__SERVICE__HTTP_PORT (6333) over HTTP, and over HTTPS where that is not understood; whose certificate it is does not matter within
 * a container. `service.allow_clients` must have 127.0.0.1, and a node that wants certificates of clients needs another check.
 */

import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

const port = Number(process.env.SERVICE__SERVICE__HTTP_PORT || 6333);
const TIMEOUT_MS = 4000;

const statusBy = (get, protocol, options) =>
  new Promise((resolve) => {
    const request = get(`${protocol}://127.0.0.1:${port}/healthz`, { timeout: TIMEOUT_MS / 2, ...options }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(0));
  });

const isAlive = (await statusBy(getHttp, 'http', {})) === 200 || (await statusBy(getHttps, 'https', { rejectUnauthorized: false })) === 200;
process.exit(isAlive ? 0 : 1);
