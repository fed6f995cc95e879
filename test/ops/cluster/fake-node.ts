/**
 * A program that a local cluster starts in the server's place: quick and small. It answers `/readyz` and `/cluster`, says at
 * `/start` how it was started, echoes on its internal port, and sends `/say?port=P&text=T` to another one's, through the
 * proxy that it was given and on one connection per port, as the server's channels do.
 */

import { createServer, request } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';

const own = Number(process.env.SERVICE__CLUSTER__P2P__PORT);
const options = process.argv.slice(2);
const connections = new Map<number, Promise<Socket>>();
const echoes: string[] = [];

function connection(port: number): Promise<Socket> {
  const known = connections.get(port);
  if (known !== undefined) return known;
  const made = new Promise<Socket>((resolve, reject) => {
    const proxy = new URL(process.env.grpc_proxy as string);
    const asked = request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: `127.0.0.1:${port}`, agent: false });
    asked.once('connect', (response, socket) => {
      if (response.statusCode !== 200) reject(new Error(`CONNECT: ${response.statusCode}`));
      socket.on('data', (bytes: Buffer) => echoes.push(bytes.toString()));
      resolve(socket);
    });
    asked.once('error', reject);
    asked.end();
  });
  made.catch(() => connections.delete(port));
  connections.set(port, made);
  return made;
}

const heard: string[] = [];
createTcpServer((socket) => {
  socket.on('data', (bytes) => {
    heard.push(bytes.toString());
    socket.write(bytes);
  });
  socket.on('error', () => socket.destroy());
}).listen(own, '127.0.0.1');

const answers: Record<string, (url: URL) => unknown> = {
  '/readyz': () => ({}),
  '/start': () => ({ options, proxied: process.env.grpc_proxy !== undefined, unset: process.env.no_proxy === undefined }),
  '/heard': () => ({ heard, echoes }),
  '/say': (url) => {
    void connection(Number(url.searchParams.get('port'))).then((socket) => socket.write(url.searchParams.get('text') as string));
    return {};
  },
  '/cluster': () => ({
    status: 'enabled',
    peer_id: own,
    peers: { [own]: { uri: `http://127.0.0.1:${own}/` } },
    raft_info: { term: 1, commit: 1, pending_operations: 0, leader: own, role: 'Leader', is_voter: true },
    consensus_thread_status: { consensus_thread_status: 'working' },
    message_send_failures: {},
  }),
};

createServer((incoming, response) => {
  const url = new URL(incoming.url as string, 'http://fake');
  const answer = url.pathname.startsWith('/cluster/peer/') ? () => true : answers[url.pathname];
  response.writeHead(answer === undefined ? 404 : 200);
  response.end(JSON.stringify({ result: answer?.(url) }));
}).listen(Number(process.env.SERVICE__SERVICE__HTTP_PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
process.stdout.write(`started with ${options.join(' ')}\n`);
