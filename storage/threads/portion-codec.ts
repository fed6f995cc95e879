/** Encodes portions and their answers for other nodes with the same version of the protocol. */

import { TroupeError } from '../../protocols/errors.js';
import { parseStored, stringifyJson } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { pack, unpack } from '../../protocols/pack.js';
import type { Ask, LevelAsk, Portion, PortionAnswer } from './portion.js';

/** Raised with every change of the messages that an older node would misread. */
const PROTOCOL = 1;

export function encodePortion({ asks }: Portion): Uint8Array {
  return pack([PROTOCOL, asks.map(forWire)]);
}

/** Decodes what `encodePortion` wrote. Errors: `wrongInput` for bytes that no node of this version sends. */
export function decodePortion(bytes: Uint8Array): Portion {
  return { asks: (contentOf(bytes) as Ask[]).map(fromWire) };
}

export function encodePortionAnswer({ answers }: PortionAnswer): Uint8Array {
  return pack([PROTOCOL, answers]);
}

/** Decodes what `encodePortionAnswer` wrote. Errors: as `decodePortion`. */
export function decodePortionAnswer(bytes: Uint8Array): PortionAnswer {
  return { answers: contentOf(bytes) as PortionAnswer['answers'] };
}

function contentOf(bytes: Uint8Array): unknown[] {
  const value = unpack(bytes);
  if (!Array.isArray(value) || value[0] !== PROTOCOL || !Array.isArray(value[1])) {
    throw new TroupeError('wrongInput', 'another node uses another version of the read protocol: run the same release on all nodes');
  }
  return value[1];
}

/** A formula as JSON text: its variables' names are data, and data may only be values here. */
function forWire(ask: Ask): unknown {
  if (ask.kind !== 'level' || ask.query.kind !== 'formula') return ask;
  const { formula } = ask.query;
  const defaults = stringifyJson(formula.defaults as JsonValue);
  return { ...ask, query: { ...ask.query, formula: { ...formula, defaults } } };
}

function fromWire(ask: Ask): Ask {
  if (ask.kind !== 'level' || ask.query.kind !== 'formula') return ask;
  const { formula } = ask.query;
  const defaults = parseStored(formula.defaults as unknown as string) as typeof formula.defaults;
  return { ...ask, query: { ...ask.query, formula: { ...formula, defaults } } } satisfies LevelAsk;
}
