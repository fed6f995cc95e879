/**
 * The unmodified JavaScript clients for REST and gRPC, which trust the authority of NODE_EXTRA_CA_CERTS. Arguments: the two ports. Prints what
 * they found.
 */

import { QdrantClient as GrpcClient } from '@qdrant/js-client-grpc';
import { QdrantClient } from '@qdrant/js-client-rest';

const [port, grpcPort] = process.argv.slice(2);
const rest = new QdrantClient({ url: `https://localhost:${port}` });
await rest.createCollection('c', { vectors: { size: 2, distance: 'Dot' } });
const points = Array.from({ length: 500 }, (_, id) => ({ id, vector: [id, 1], payload: { text: 'a'.repeat(1000) } }));
await rest.upsert('c', { wait: true, points });
const found = await rest.query('c', { query: [1, 0], limit: 1 });
const all = await rest.scroll('c', { limit: 500, with_payload: true });
const grpc = new GrpcClient({ url: `https://localhost:${grpcPort}` });
const counted = await grpc.api('points').count({ collectionName: 'c', exact: true });
console.log(JSON.stringify({ best: found.points[0]?.id, scrolled: all.points.length, counted: String(counted.result?.count) }));
// The clients keep their connections.
process.exit();
