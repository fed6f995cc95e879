/** Entry of a reader's thread that has servers for clients. */

import { runReader } from '../../../storage/reader/run.js';
import { PeerStreams } from '../../context/peer-streams.js';
import { GrpcReaderDoor } from '../../grpc/reader-door.js';
import type { GrpcReaderSettings } from '../../grpc/reader-messages.js';
import { ReaderDoor } from './door.js';
import type { ReaderDoorSettings } from './messages.js';

void runReader((reader, { port, settings }) => {
  const known = settings as ReaderDoorSettings | GrpcReaderSettings;
  if ('messageBytesMax' in known) void new GrpcReaderDoor(reader, port, known).listen();
  else new ReaderDoor(reader, port, known).listen();
}, new PeerStreams());
