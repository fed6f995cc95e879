/** How the fields of a gRPC message become a REST value: what the tables of forms are made of. */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';

/** Fields of a decoded message; those that were not sent are undefined or, without presence, zero. */
export type MessageFields = { [name: string]: JsonValue | undefined };

/**
 * The REST value of a message; undefined: as if it was not there.
 * vectors: lists of floats, which stand in the fields as `[index]`; a form may add to them.
 */
export type RestForm = (fields: MessageFields, vectors: Float32Array[]) => JsonValue | undefined;

/** By the message's name without package. */
export type RestForms = Readonly<Record<string, RestForm>>;

/** An object of the given members, whose names are those of a form, without those that are undefined. */
export function object(members: MessageFields): JsonValue {
  const object: { [name: string]: JsonValue } = {};
  for (const name in members) {
    const value = members[name];
    if (value !== undefined) object[name] = value;
  }
  return object;
}

/** The value of the field of a oneof that was sent. Errors: `malformedBody` when none was. */
export function chosen(fields: MessageFields, what: string): JsonValue {
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) return value;
  }
  throw missing(what);
}

/** The name and value of the field of a oneof that was sent. Errors: as `chosen`. */
export function chosenMember(fields: MessageFields, what: string): [name: string, value: JsonValue] {
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) return [name, value];
  }
  throw missing(what);
}

/** A form that is one field of the message. */
export function only(name: string): RestForm {
  return (fields) => fields[name];
}

/** A form that is the message's only, repeated field. */
export function listOf(name: string): RestForm {
  return (fields) => fields[name] ?? [];
}

/** A form that is an object with one member, named as the field of a oneof. */
export function tagged(what: string): RestForm {
  return (fields) => {
    const [name, value] = chosenMember(fields, what);
    return { [name]: value };
  };
}

export function missing(what: string): TroupeError {
  return new TroupeError('malformedBody', `${what} is missing`);
}
