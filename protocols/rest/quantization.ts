/** `quantization_config` of collections and vectors, as requests have it. */

import { TroupeError } from '../errors.js';
import type { QuantizationConfig } from '../model/collection.js';
import { Fields, isObject, wrongType } from './fields.js';

const COMPRESSIONS = ['x4', 'x8', 'x16', 'x32', 'x64'] as const;
const ENCODINGS = ['one_bit', 'two_bits', 'one_and_half_bits'] as const;
const QUERY_ENCODINGS = ['default', 'binary', 'scalar4bits', 'scalar8bits'] as const;
const TURBO_BITS = ['bits1', 'bits1_5', 'bits2', 'bits4'] as const;

/** Kinds in the order in which they are tried: a value that names several counts as the first of them that it describes. */
const KINDS: readonly ((fields: Fields) => QuantizationConfig | undefined)[] = [scalarOf, productOf, binaryOf, turboOf];

/**
 * The setting as it is shown, nulls left out; undefined when absent or null.
 * fields: of the body or of a vector's parameters. Errors: malformedBody, and invalidValue for a quantile out of its range.
 */
export function decodeQuantization(fields: Fields): QuantizationConfig | undefined {
  const value = fields.value('quantization_config');
  if (value === undefined) return undefined;
  const path = fields.pathOf('quantization_config');
  if (!isObject(value)) throw wrongType(path, value, 'a quantization');
  const setting = Fields.of(value, path);
  for (const kind of KINDS) {
    const decoded = described(() => kind(setting));
    if (decoded !== undefined) return decoded;
  }
  throw new TroupeError('malformedBody', `\`${path}\` has none of \`scalar\`, \`product\`, \`binary\`, \`turbo\``);
}

/** As `decodeQuantization`; `Disabled` takes a setting away. */
export function decodeQuantizationChange(fields: Fields): QuantizationConfig | 'Disabled' | undefined {
  return fields.value('quantization_config') === 'Disabled' ? 'Disabled' : decodeQuantization(fields);
}

/** What `decode` says; undefined where the value is not of its form. */
function described<Result>(decode: () => Result | undefined): Result | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'malformedBody') return undefined;
    throw error;
  }
}

function scalarOf(setting: Fields): QuantizationConfig | undefined {
  const scalar = setting.nested('scalar');
  const type = scalar?.word('type', ['int8']);
  if (scalar === undefined || type === undefined) return undefined;
  const always_ram = scalar.boolean('always_ram');
  const quantile = scalar.number('quantile', 0.5, 1);
  return { scalar: { type, ...given({ quantile, always_ram }) } };
}

function productOf(setting: Fields): QuantizationConfig | undefined {
  const product = setting.nested('product');
  const compression = product?.word('compression', COMPRESSIONS);
  if (product === undefined || compression === undefined) return undefined;
  return { product: { compression, ...given({ always_ram: product.boolean('always_ram') }) } };
}

function binaryOf(setting: Fields): QuantizationConfig | undefined {
  const binary = setting.nested('binary');
  if (binary === undefined) return undefined;
  return {
    binary: given({
      always_ram: binary.boolean('always_ram'),
      encoding: binary.word('encoding', ENCODINGS),
      query_encoding: binary.word('query_encoding', QUERY_ENCODINGS),
    }),
  };
}

function turboOf(setting: Fields): QuantizationConfig | undefined {
  const turbo = setting.nested('turbo');
  if (turbo === undefined) return undefined;
  return { turbo: given({ always_ram: turbo.boolean('always_ram'), bits: turbo.word('bits', TURBO_BITS) }) };
}

/** The fields that are there. */
function given<Shape extends object>(fields: Shape): { [Key in keyof Shape]?: Exclude<Shape[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Shape]?: Exclude<Shape[Key], undefined>;
  };
}
