/** The REST servers of the readers, as the main thread sees them: it answers what they hand on. */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import { type CallTrace, emptyTrace } from '../../../protocols/model/explanation.js';
import type { OperationName } from '../../../protocols/openapi/operations.js';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { callerFrom } from '../../access/door-access.js';
import { type DoorThreads, laneOf, ReaderServers } from '../../context/reader-servers.js';
import type { DoorServices } from '../../context/services.js';
import { type PlainRoute, ROUTES, type Route } from '../../routes.js';
import { answerCall } from '../calls/answer-call.js';
import { parseQueryString } from '../calls/query-string.js';
import type { RestReply } from '../calls/reply.js';
import type { DoorCall, DoorCounts, DoorRow, DoorSlow, DoorUnknownFields, ReaderDoorSettings, ToDoor } from './messages.js';

export type DoorAddress = Pick<ReaderDoorSettings, 'host' | 'port' | 'maxBodyBytes' | 'packFromBytes' | 'tls'>;

/** A folder that only this user can enter, for the socket through which readers hand connections on. */
export interface HandOnSocket {
  readonly path: string;
  remove(): Promise<void>;
}

/** Operations that answer the same for as long as the process lives. */
const FIXED: ReadonlySet<string> = new Set<OperationName>(['root', 'healthz', 'livez']);

export async function makeHandOnSocket(): Promise<HandOnSocket> {
  const folder = await mkdtemp(join(os.tmpdir(), 'troupe-'));
  return { path: join(folder, 'http'), remove: () => rm(folder, { recursive: true, force: true }) };
}

type RestReaderServers = ReaderServers<ReaderDoorSettings, DoorCall | DoorCounts | DoorSlow | DoorUnknownFields>;

/** Resolves when every reader listens. Errors: the system's, if one cannot. */
export async function openRestInReaders(
  services: DoorServices,
  threads: DoorThreads<ReaderDoorSettings>,
  { tls, ...address }: DoorAddress,
  handOnPath: string,
): Promise<RestReaderServers> {
  const rows = ROUTES.map(rowOf);
  const servers: RestReaderServers = new ReaderServers(threads, tls, async (port, message) => {
    if (message.kind === 'unknownFields') {
      for (const count of message.counts) services.unknownFields.note(count);
      return;
    }
    if (message.kind === 'counted') {
      services.stats.byCollection.add(message.counts);
      return;
    }
    if (message.kind === 'slow') {
      services.slow.note(message.request);
      return;
    }
    const { at, body, credential, fields, heavy, heldMs, id, isTraced, paid, path, postedMs, query, url } = message;
    const trace: CallTrace | undefined = isTraced ? emptyTrace() : undefined;
    const reply = await answerCall(services, false, {
      route: ROUTES[at] as PlainRoute,
      at,
      url,
      path,
      query: parseQueryString(query),
      caller: callerFrom(services.access?.callers, credential),
      body: () => body,
      isGone: () => heavy?.gone[0] === 1,
      heavy,
      heldMs: heldMs + steadyNowMs() - postedMs,
      paid,
      field: (name) => fields[name],
      trace,
    });
    const [packedReply, transfer] = packed(id, reply, trace ?? null);
    port.postMessage(packedReply, transfer);
  });
  const refuseUnknown = services.unknownFields.refuse;
  const access = services.access?.callers.settings ?? null;
  const audit = services.audit?.settings ?? null;
  const traces = services.traces?.settings ?? null;
  await servers.open((current, reader) => ({
    ...address,
    tls: current,
    access,
    audit,
    traces,
    rows,
    refuseUnknown,
    handOnPath,
    clients: services.clients?.forThread(laneOf('rest', reader)) ?? null,
    counts: services.stats.share().buffer,
    slowFromMs: services.slow.fromMs,
  }));
  return servers;
}

/** The body in a buffer of its own, since a message takes the whole buffer of a view along. Long answers are in one already. */
function packed(id: number, reply: RestReply | null, trace: CallTrace | null): [ToDoor, ArrayBuffer[]] {
  if (reply === null) return [{ kind: 'reply', id, reply, trace }, []];
  if (reply.isLong === true) return [{ kind: 'reply', id, reply, trace }, [reply.body.buffer as ArrayBuffer]];
  const body = Buffer.allocUnsafeSlow(reply.body.length);
  body.set(reply.body);
  return [{ kind: 'reply', id, reply: { ...reply, body }, trace }, body.length > 0 ? [body.buffer as ArrayBuffer] : []];
}

function rowOf(route: Route): DoorRow {
  const { access, method, name, path } = route;
  const row = { access, method, name, path, isFixed: FIXED.has(name) };
  switch (route.kind) {
    case 'read':
      return { ...row, kind: 'read', engine: route.engine };
    case 'write':
      return { ...row, kind: 'write', engine: route.engine };
    case 'node':
    case 'upload':
    case 'download':
      return { ...row, kind: route.kind };
    default:
      return route satisfies never;
  }
}
