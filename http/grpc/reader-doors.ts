/** The gRPC servers of the readers, as the main thread sees them: it answers what they hand on. */

import { GRPC_METHOD_NAMES, type GrpcMethodName } from '../../protocols/grpc/method-names.js';
import { type CallTrace, emptyTrace } from '../../protocols/model/explanation.js';
import { callerFrom } from '../access/door-access.js';
import { type DoorThreads, laneOf, ReaderServers } from '../context/reader-servers.js';
import type { DoorServices } from '../context/services.js';
import { ROUTES } from '../routes.js';
import { type Served, type ServedOutcome, servedMethods } from './methods.js';
import type { GrpcDoorCall, GrpcDoorCounts, GrpcDoorSlow, GrpcReaderSettings, GrpcRow, ToGrpcDoor } from './reader-messages.js';

type GrpcReaderServers = ReaderServers<GrpcReaderSettings, GrpcDoorCall | GrpcDoorCounts | GrpcDoorSlow>;

/** Resolves when every reader listens. Errors: the system's, if one cannot. */
export async function openGrpcInReaders(
  services: DoorServices,
  threads: DoorThreads<GrpcReaderSettings>,
  { tls, ...address }: Pick<GrpcReaderSettings, 'host' | 'port' | 'messageBytesMax' | 'tls'>,
): Promise<GrpcReaderServers> {
  const methods = servedMethods(services, false);
  const rows = [...methods.keys()].map(grpcRowOf);
  const servers: GrpcReaderServers = new ReaderServers(threads, tls, async (port, told) => {
    if (told.kind === 'counted') {
      services.grpcStats.byCollection.add(told.counts);
      return;
    }
    if (told.kind === 'slow') {
      services.slow.note(told.request);
      return;
    }
    const { credential, deadlineMs, fields, heavy, id, isTraced, message, paid, path } = told;
    const trace: CallTrace | undefined = isTraced ? emptyTrace() : undefined;
    const served = methods.get(path) as Served;
    const caller = callerFrom(services.access?.callers, credential);
    const outcome = await served(Buffer.from(message.buffer, message.byteOffset, message.length), deadlineMs, {
      caller,
      credential,
      heavy,
      paid,
      origin: { address: '', field: (name) => fields[name] },
      trace,
    });
    const [own, transfer] = packed(outcome);
    port.postMessage({ kind: 'outcome', id, outcome: own, trace: trace ?? null } satisfies ToGrpcDoor, transfer);
  });
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
    clients: services.clients?.forThread(laneOf('grpc', reader)) ?? null,
    counts: services.grpcStats.share().buffer,
    slowFromMs: services.slow.fromMs,
  }));
  return servers;
}

/** The answer in a buffer of its own: a message takes the whole buffer of a view along. */
function packed(outcome: ServedOutcome): [ServedOutcome, ArrayBuffer[]] {
  if (outcome.kind === 'failed') return [outcome, []];
  const part = new Uint8Array(outcome.parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const bytes of outcome.parts) {
    part.set(bytes, at);
    at += bytes.length;
  }
  return [{ kind: 'message', parts: [part] }, [part.buffer]];
}

/** at: -1 for a method that is no operation of the table. */
export function grpcRowOf(path: string): GrpcRow {
  const name = path.slice(1);
  const route = ROUTES.find(({ grpc }) => grpc === name);
  const at = GRPC_METHOD_NAMES.indexOf(name as GrpcMethodName);
  return {
    name: route?.name ?? name,
    path,
    at,
    engine: route?.kind === 'read' ? route.engine : null,
    write: route?.kind === 'write' ? route.engine : null,
    method: route?.method ?? 'GET',
    access: route?.access ?? 'open',
  };
}
