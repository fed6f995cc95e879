/**
 * Ports for nodes on this machine that nobody else takes between choice and start, or while a node is away.
 *
 * Other programs that choose ports here take blocks: whoever listens on the first port of a block has the others to give.
 * The system lets go of that port when its process ends, however it ends. Blocks lie outside the range from which the system
 * takes ports for connections.
 */

import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';

/** Ports of a block, the guarding one included. */
const BLOCK_PORTS = 64;
const PORT_MIN = 12_000;
const PORT_MAX = 65_535;
/** Where a system does not tell: Linux's default. */
const CONNECTIONS: PortRange = { first: 32_768, last: 60_999 };
const CONNECTIONS_FILE = '/proc/sys/net/ipv4/ip_local_port_range';

/** Both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** Of this process: the guards are held until it ends. Ports are given once. */
const own = { guards: [] as Server[], free: [] as number[] };

/** Ports nobody listens on, all different, and no others that this process has been given. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = own.free.shift();
    if (port === undefined) await takeBlock();
    else if (await isFree(port)) ports.push(port);
  }
  return ports;
}

async function takeBlock(): Promise<void> {
  const { first, last } = outside(connectionRange());
  const blocks = Math.floor((last - first + 1) / BLOCK_PORTS);
  for (let tries = 0; tries < 4 * blocks; tries++) {
    const guarding = first + randomInt(blocks) * BLOCK_PORTS;
    const guard = await listenOn(guarding);
    if (guard === null) continue;
    guard.unref();
    own.guards.push(guard);
    own.free.push(...Array.from({ length: BLOCK_PORTS - 1 }, (_, index) => guarding + 1 + index));
    return;
  }
  throw new Error(`other programs listen on all of the ports that were tried, from ${first} to ${last}: end some of them`);
}

/** The larger part of the ports that connections of a system with this range don't get. */
export function outside({ first, last }: PortRange): PortRange {
  const below = { first: PORT_MIN, last: first - 1 };
  const above = { first: Math.max(last + 1, PORT_MIN), last: PORT_MAX };
  const larger = size(below) >= size(above) ? below : above;
  // A system that gives all ports to connections: any may be taken, and a node that meets that is started again.
  return size(larger) >= 4 * BLOCK_PORTS ? larger : { first: PORT_MIN, last: PORT_MAX };
}

function size({ first, last }: PortRange): number {
  return last - first + 1;
}

function connectionRange(): PortRange {
  try {
    const [first, last] = readFileSync(CONNECTIONS_FILE, 'utf8').trim().split(/\s+/).map(Number) as [number, number];
    return Number.isInteger(first) && Number.isInteger(last) ? { first, last } : CONNECTIONS;
  } catch {
    return CONNECTIONS;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port);
  if (server === null) return false;
  await new Promise((done) => server.close(done));
  return true;
}

/** Null when another one listens there. */
function listenOn(port: number): Promise<Server | null> {
  return new Promise((done) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => done(null));
    server.listen(port, '127.0.0.1', () => done(server));
  });
}
