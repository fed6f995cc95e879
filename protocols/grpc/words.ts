/** Words that REST has for the values of gRPC enums. */

import { TroupeError } from '../errors.js';
import { REPLICA_STATES, TRANSFER_METHODS } from '../model/cluster.js';

/** By enum, in the order of their numbers from 0; undefined: as if the field was absent. */
const WORDS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  NullValue: [undefined],
  Datatype: [undefined, 'float32', 'uint8', 'float16', 'turbo4'],
  Modifier: ['none', 'idf'],
  MultiVectorComparator: ['max_sim'],
  Distance: [undefined, 'Cosine', 'Euclid', 'Dot', 'Manhattan'],
  CollectionStatus: [undefined, 'green', 'yellow', 'red', 'grey'],
  PayloadSchemaType: [undefined, 'keyword', 'integer', 'float', 'geo', 'text', 'bool', 'datetime', 'uuid'],
  FieldType: ['keyword', 'integer', 'float', 'geo', 'text', 'bool', 'datetime', 'uuid'],
  QuantizationType: [undefined, 'int8'],
  CompressionRatio: ['x4', 'x8', 'x16', 'x32', 'x64'],
  BinaryQuantizationEncoding: ['one_bit', 'two_bits', 'one_and_half_bits'],
  'BinaryQuantizationQueryEncoding.Setting': ['default', 'binary', 'scalar4bits', 'scalar8bits'],
  TurboQuantBitSize: ['bits1', 'bits1_5', 'bits2', 'bits4'],
  'MaxOptimizationThreads.Setting': ['auto'],
  ShardingMethod: ['auto', 'custom'],
  TokenizerType: [undefined, 'prefix', 'whitespace', 'word', 'multilingual'],
  ReplicaState: REPLICA_STATES,
  ReshardingDirection: ['up', 'down'],
  ShardTransferMethod: TRANSFER_METHODS,
  WriteOrderingType: ['weak', 'medium', 'strong'],
  UpdateMode: ['upsert', 'insert_only', 'update_only'],
  ReadConsistencyType: ['all', 'majority', 'quorum'],
  Direction: ['asc', 'desc'],
  RecommendStrategy: ['average_vector', 'best_score', 'sum_scores'],
  Fusion: ['rrf', 'dbsf'],
  Sample: ['random'],
  UpdateStatus: [undefined, 'acknowledged', 'completed', 'clock_rejected', 'wait_timeout'],
};

/** The word for an enum's number; undefined where it means «not given». Errors: `malformedBody` for numbers it does not have. */
export function enumWord(name: string, number: number): string | undefined {
  const words = WORDS[name] as readonly (string | undefined)[];
  if (number < 0 || number >= words.length) throw new TroupeError('malformedBody', `${name}: ${number} is not one of its values`);
  return words[number];
}

/** The number of a word; 0 for a word it does not have. */
export function enumNumber(name: string, word: unknown): number {
  return Math.max(0, (WORDS[name] as readonly unknown[]).indexOf(word));
}
