/** The program of a reader's thread that can have servers for clients. */

import { bundledEntry } from '../storage/threads/entries.js';

export function readerWithServers(): URL {
  return bundledEntry('doors', new URL('../http/rest/readers/entry.js', import.meta.url));
}
