/** Payloads: plain JSON objects. `__proto__` and `constructor` are ordinary keys. */

/** A JSON value. Integers that a double cannot hold exactly are bigint. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | { [key: string]: JsonValue };

export type Payload = { [key: string]: JsonValue };

/** Deepest nesting of a payload: stored ones are read again by parsers that end at 512 (`protocols/json.ts`), the text around them included. */
export const PAYLOAD_DEPTH_MAX = 500;
