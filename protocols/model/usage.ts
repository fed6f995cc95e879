/** What a request costs, in the words of the API: in bytes, all of them. Source: schema HardwareUsage. */

export interface HardwareUsage {
  /** Vectors that were compared: originals, codes or items of sparse vectors, each as often as it was. */
  cpu: number;
  /** Payloads, as JSON. */
  payload_io_read: number;
  payload_io_write: number;
  /** Records of payload indexes that are not in memory. */
  payload_index_io_read: number;
  payload_index_io_write: number;
  /** Vectors that are not in memory. */
  vector_io_read: number;
  /** Vectors that the request brought, as they are stored. */
  vector_io_write: number;
}

export function noUsage(): HardwareUsage {
  return {
    cpu: 0,
    payload_io_read: 0,
    payload_io_write: 0,
    payload_index_io_read: 0,
    payload_index_io_write: 0,
    vector_io_read: 0,
    vector_io_write: 0,
  };
}

/** Adds to `sum` in place. */
export function addUsage(sum: HardwareUsage, usage: HardwareUsage): void {
  for (const name of Object.keys(usage) as (keyof HardwareUsage)[]) sum[name] += usage[name];
}
