/** Constants of replication, in ticks of 100 ms and bytes. */

export const REPLICATION_TICK_MS = 100;
/** A required replica that answers only errors for this long is made Dead. */
export const FAIL_TICKS = 20;
/** How long acknowledgements go on without a replica where nothing can be agreed on; then the leader asks again. */
export const EXCUSE_TICKS = 20;
/** A proposal that is not agreed on is made again after this long. */
export const PROPOSE_TICKS = 20;
/** A failed request to the own replica or to consensus is tried again after this long. */
export const RETRY_TICKS = 3;
/** A note that could not be written is tried again after this long (Log-L9). */
export const NOTE_RETRY_TICKS = 10;
/** A leader that has paused for another one leads on after this long if none comes. */
export const PAUSE_TICKS = 30;
/** Largest size of one call with entries; a larger operation goes alone. */
export const APPEND_BYTES = 2 * 1024 * 1024;
/** Entries kept in memory for the channels; older ones are read from the log. */
export const RECENT_BYTES = 16 * 1024 * 1024;
/** Most writes that wait, and their most bytes; further ones are refused as `busy`. */
export const WRITES_MAX = 4096;
export const WRITE_BYTES_MAX = 64 * 1024 * 1024;
