/** Encodes portions and their answers for other nodes with the same version of the protocol. */

import { TroupeError } from '../../protocols/errors.js';
import { parseStored, stringifyJson } from '../../protocols/json.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { pack, unpack } from '../../protocols/pack.js';
import { decodePlainAnswer, decodePlainPortion, isPlain } from './plain-portion.js';
import type { Ask, LevelAsk, Portion, PortionAnswer } from './portion.js';

/** Raised with every change of the messages that an older node would misread. */
const PROTOCOL = 1;

/** Nodes of an earlier release ignore what stands behind the asks. */
export function encodePortion({ asks, explain }: Portion): Uint8Array {
  return pack([PROTOCOL, asks.map(forWire), ...(explain === true ? [{ explain }] : [])]);
}

/** The same portion as every release takes it. */
export function packedPortion(bytes: Uint8Array): Uint8Array {
  return isPlain(bytes) ? encodePortion(decodePlainPortion(bytes)) : bytes;
}

/** Decodes what `encodePortion` wrote, or a plain portion. Errors: `wrongInput` for bytes that no node of this version sends. */
export function decodePortion(bytes: Uint8Array): Portion {
  if (isPlain(bytes)) return decodePlainPortion(bytes);
  const [asks, options] = contentOf(bytes);
  return { asks: (asks as Ask[]).map(fromWire), ...(options as Pick<Portion, 'explain'> | undefined) };
}

export function encodePortionAnswer({ answers, explanation }: PortionAnswer): Uint8Array {
  return pack([PROTOCOL, answers, ...(explanation === undefined ? [] : [{ explanation }])]);
}

/** Decodes what `encodePortionAnswer` wrote, or a plain answer, whose memory is used. Errors: as `decodePortion`. */
export function decodePortionAnswer(bytes: Uint8Array): PortionAnswer {
  if (isPlain(bytes)) return decodePlainAnswer(bytes);
  const [answers, more] = contentOf(bytes);
  return { answers: answers as PortionAnswer['answers'], ...(more as Pick<PortionAnswer, 'explanation'> | undefined) };
}

function contentOf(bytes: Uint8Array): [content: unknown[], more: unknown] {
  const value = unpack(bytes);
  if (!Array.isArray(value) || value[0] !== PROTOCOL || !Array.isArray(value[1])) {
    throw new TroupeError('wrongInput', 'another node uses another version of the read protocol: run the same release on all nodes');
  }
  return [value[1], value[2]];
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
