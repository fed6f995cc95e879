/** Entry of a reader's thread that has no server for clients. */

import { runReader } from './run.js';

void runReader();
