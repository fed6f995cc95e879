/**
 * The unmodified JavaScript clients over TLS; they trust the authority of NODE_EXTRA_CA_CERTS. Arguments: the two ports, then the credentials
 * as JSON. Prints what they found.
 */

import { askWithCredentials, type Credentials } from './with-credentials.js';

const [port, grpcPort, credentials = ''] = process.argv.slice(2);
const urls = { rest: `https://localhost:${port}`, grpc: `https://localhost:${grpcPort}` };
console.log(JSON.stringify(await askWithCredentials(urls, JSON.parse(credentials) as Credentials, 'c')));
// The clients keep their connections.
process.exit();
