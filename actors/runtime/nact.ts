/**
 * Mailboxes made of nact actors: one message at a time, each in an event-loop turn of its own. The only importer of nact.
 * Supervision, bounds and counts are the shell's (`actor.ts`), as nact has no bounds and drops messages to stopped actors silently.
 */

import * as nact from 'nact';
import type { Mailbox, Mailboxes } from './ports.js';

interface NactMailbox extends Mailbox {
  readonly ref: nact.Ref<unknown>;
}

export function openNactMailboxes(): Mailboxes {
  const system = nact.start();
  return {
    open(parent, name, receive): NactMailbox {
      const ref = nact.spawn(
        parent === null ? system : (parent as NactMailbox).ref,
        // The handler returns at once and keeps no state: nact takes the next message when it has returned.
        (_state: null, item: unknown) => {
          receive(item);
          return null;
        },
        name,
        { initialState: null, onCrash: (_message, _error, context) => context.resume },
      );
      return { ref, post: (item) => nact.dispatch(ref, item), close: () => nact.stop(ref) };
    },
    close: () => nact.stop(system),
  };
}
