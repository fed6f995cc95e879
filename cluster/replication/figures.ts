/** Figures of replication, in ticks of 100 ms and bytes. */

export const REPLICATION_TICK_MS = 100;
/** A replica that acknowledgements wait for and that answers nothing but errors for so long is made Dead. */
export const FAIL_TICKS = 20;
/** How long a replica is not waited for where nothing can be agreed; then that is found out anew. */
export const EXCUSE_TICKS = 20;
/** What was proposed and is not agreed is proposed again. */
export const PROPOSE_TICKS = 20;
/** What the own replica or consensus failed at is tried again after it. */
export const RETRY_TICKS = 3;
/** What the disk should have noted is tried again after it (Log-L9). */
export const NOTE_RETRY_TICKS = 10;
/** A leader that pauses for the next one, which does not come, leads on after so long. */
export const PAUSE_TICKS = 30;
/** Of one call that brings entries; a larger operation goes alone. */
export const APPEND_BYTES = 2 * 1024 * 1024;
/** Entries kept in memory for the channels; older ones are read from the log. */
export const RECENT_BYTES = 16 * 1024 * 1024;
/** Beyond these, writes are `busy`. */
export const WRITES_MAX = 4096;
export const WRITE_BYTES_MAX = 64 * 1024 * 1024;
