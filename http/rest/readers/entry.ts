/** Entry of a reader's thread that has servers for clients. */

import type { MessagePort } from 'node:worker_threads';
import type { Reader } from '../../../storage/reader/reader.js';
import { runReader } from '../../../storage/reader/run.js';
import { openKnownCallers } from '../../access/known-callers.js';
import { allCallLogs } from '../../context/call-log.js';
import type { PeerPortSettings } from '../../context/peer-port.js';
import { PeerStreams } from '../../context/peer-streams.js';
import { GrpcReaderDoor } from '../../grpc/reader-door.js';
import type { GrpcReaderSettings } from '../../grpc/reader-messages.js';
import { ReaderDoor } from './door.js';
import type { ReaderDoorSettings } from './messages.js';

void runReader((reader, { port, settings }) => {
  const wanted = settings as ReaderDoorSettings | GrpcReaderSettings | PeerPortSettings;
  void ('entrance' in wanted ? openPeerPort(reader, port, wanted) : openDoor(reader, port, wanted));
}, new PeerStreams());

async function openPeerPort(reader: Reader, port: MessagePort, settings: PeerPortSettings): Promise<void> {
  const { PeerPort } = await import('../../context/peer-port.js');
  await new PeerPort(reader, port, settings).listen();
}

async function openDoor(reader: Reader, port: MessagePort, settings: ReaderDoorSettings | GrpcReaderSettings): Promise<void> {
  const callers = await openKnownCallers(settings.access, Date.now);
  const audit = settings.audit === null ? null : new (await import('../../audit/audit-log.js')).AuditLog(settings.audit);
  const traces = settings.traces === null ? null : new (await import('../../otlp/trace-log.js')).TraceLog(settings.traces);
  const calls = allCallLogs([audit, traces]);
  if ('messageBytesMax' in settings) await new GrpcReaderDoor(reader, port, settings, callers, calls).listen();
  else new ReaderDoor(reader, port, settings, callers, calls).listen();
}
