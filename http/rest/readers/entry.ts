/** Entry of a reader's thread that has a REST server. */

import { runReader } from '../../../storage/reader/run.js';
import { ReaderDoor } from './door.js';
import type { ReaderDoorSettings } from './messages.js';

void runReader((reader, { port, settings }) => new ReaderDoor(reader, port, settings as ReaderDoorSettings).listen());
