/** How answers tell what they cost, with `service.hardware_reporting`. */

import { encodeMessage } from '../../protocols/grpc/encode.js';
import { type MessageType, schema } from '../../protocols/grpc/schema.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';

const BYTES = 2;

/** The member of the envelope, with its comma. */
export function usageMember(hardware: HardwareUsage): string {
  return `,"usage":${JSON.stringify({ hardware, inference: null })}`;
}

/** The field `usage` of an answer of this type; no bytes when it has none. */
export function usageField(answer: MessageType, hardware: HardwareUsage): Uint8Array {
  const field = answer.fields.find(({ name }) => name === 'usage');
  if (field === undefined) return new Uint8Array(0);
  // Seven integers take fewer than 128 bytes, so their length is one byte.
  const usage = encodeMessage(schema().message('qdrant.Usage'), { hardware });
  return Buffer.concat([Uint8Array.of((field.number << 3) | BYTES, usage.length), usage]);
}
