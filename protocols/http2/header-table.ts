/** The fields that HPACK names by number: the static table and, after it, the latest fields of the connection. Source: RFC 7541, section 2.3. */

/** Source: RFC 7541, appendix A. */
const STATIC: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
];
export const STATIC_FIELDS = STATIC.length;
/** What a field counts beside its text. Source: RFC 7541, section 4.1. */
export const FIELD_OVERHEAD_BYTES = 32;
/** Bytes of a table before a SETTINGS frame changes it. */
export const TABLE_BYTES_DEFAULT = 4096;

export interface Field {
  readonly name: string;
  readonly value: string;
  /** As HPACK counts it. */
  readonly bytes: number;
}

const STATIC_TABLE: readonly Field[] = STATIC.map(([name, value]) => fieldOf(name, value));

export function fieldOf(name: string, value: string): Field {
  return { name, value, bytes: name.length + value.length + FIELD_OVERHEAD_BYTES };
}

export class HeaderTable {
  /** Rises with each change of the dynamic table. */
  version = 0;
  /** A ring of the dynamic fields: no table holds more, since each counts at least 32 bytes. */
  private readonly ring: (Field | undefined)[];
  /** Where the next field goes. */
  private next = 0;
  private count = 0;
  private bytes = 0;
  private bytesMax: number;

  /** bytesLimit: how large the table may be made. */
  constructor(private readonly bytesLimit: number) {
    this.bytesMax = bytesLimit;
    this.ring = new Array(Math.max(1, Math.floor(bytesLimit / FIELD_OVERHEAD_BYTES)));
  }

  /** Undefined when there is none with this number. */
  get(index: number): Field | undefined {
    if (index <= STATIC_FIELDS) return STATIC_TABLE[index - 1];
    const age = index - STATIC_FIELDS;
    if (age > this.count) return undefined;
    return this.ring[(this.next - age + this.ring.length) % this.ring.length];
  }

  add(field: Field): void {
    this.version++;
    this.evict(this.bytesMax - field.bytes);
    if (field.bytes > this.bytesMax) return;
    this.ring[this.next] = field;
    this.next = (this.next + 1) % this.ring.length;
    this.count++;
    this.bytes += field.bytes;
  }

  /** False when it may not be made that large. */
  resize(bytes: number): boolean {
    if (bytes > this.bytesLimit) return false;
    this.version++;
    this.bytesMax = bytes;
    this.evict(bytes);
    return true;
  }

  /** Drops the oldest fields until at most this many bytes are left. */
  private evict(bytesLeft: number): void {
    while (this.count > 0 && this.bytes > bytesLeft) {
      const oldest = (this.next - this.count + this.ring.length) % this.ring.length;
      this.bytes -= (this.ring[oldest] as Field).bytes;
      this.ring[oldest] = undefined;
      this.count--;
    }
  }
}
