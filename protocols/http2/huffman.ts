/** Texts in HPACK's Huffman code. Source: RFC 7541, appendix B. */

/**
 * Symbols by the length of their codes, shortest first; within a length, codes rise with the symbols. So the code follows from this table.
 * 256 is the end of a string, which no text may contain.
 */
const SYMBOLS_BY_BITS: readonly (readonly [bits: number, symbols: readonly number[]])[] = [
  [5, codesOf('012aceiost')],
  [6, codesOf(' %-./3456789=A_bdfghlmnpru')],
  [7, codesOf(':BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz')],
  [8, codesOf('&*,;XZ')],
  [10, codesOf('!"()?')],
  [11, codesOf("'+|")],
  [12, codesOf('#>')],
  [13, [0, ...codesOf('$@[]~')]],
  [14, codesOf('^}')],
  [15, codesOf('<`{')],
  [19, [92, 195, 208]],
  [20, [128, 130, 131, 162, 184, 194, 224, 226]],
  [21, [153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230]],
  [22, [129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233]],
  [
    23,
    [
      1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182, 183, 188, 191, 197,
      231, 239,
    ],
  ],
  [24, [9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237]],
  [25, [199, 207, 234, 235]],
  [26, [192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255]],
  [27, [203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254]],
  [28, [2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127, 220, 249]],
  [30, [10, 13, 22, 256]],
];

const END_OF_STRING = 256;
/** A text ends with fewer than 8 bits of padding, all of them ones. */
const PADDING_BITS_MAX = 7;

/** A step of the decoder: the next state in the low byte, a symbol in the second one, and these flags. */
const EMITS = 1 << 16;
const FAILS = 1 << 17;

interface Decoder {
  /** Int32Array [states * 16]: the step of each state for each four bits. */
  readonly steps: Int32Array;
  /** Whether a text may end in a state. */
  readonly mayEnd: readonly boolean[];
}

/** Nodes of the code's tree: a child is a node, or a symbol as -1 - symbol. */
type Node = [zero: number, one: number];

/** Made with the first text, since many connections have none. */
let decoder: Decoder | undefined;

/** Decodes bytes[from, to) into `into`, which has room for twice as many bytes; returns their number, or -1 for bytes that are no such text. */
export function decodeHuffman(bytes: Uint8Array, from: number, to: number, into: Uint8Array): number {
  decoder ??= decoderOf(treeOf());
  const { steps, mayEnd } = decoder;
  let state = 0;
  let length = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    const high = steps[(state << 4) | (byte >>> 4)] as number;
    if ((high & EMITS) !== 0) into[length++] = high >>> 8;
    const low = steps[((high & 0xff) << 4) | (byte & 15)] as number;
    if ((low & EMITS) !== 0) into[length++] = low >>> 8;
    if (((high | low) & FAILS) !== 0) return -1;
    state = low & 0xff;
  }
  return mayEnd[state] === true ? length : -1;
}

/** The codes in their order give the tree in its order: each symbol takes the leftmost free place of its depth. */
function treeOf(): Node[] {
  const nodes: Node[] = [[0, 0]];
  let code = 0;
  let codeBits = 0;
  for (const [bits, symbols] of SYMBOLS_BY_BITS) {
    code <<= bits - codeBits;
    codeBits = bits;
    for (const symbol of symbols) {
      place(nodes, code, bits, symbol);
      code++;
    }
  }
  return nodes;
}

function place(nodes: Node[], code: number, bits: number, symbol: number): void {
  let node = nodes[0] as Node;
  for (let bit = bits - 1; bit > 0; bit--) {
    const side = (code >>> bit) & 1;
    if (node[side] === 0) node[side] = nodes.push([0, 0]) - 1;
    node = nodes[node[side] as number] as Node;
  }
  node[code & 1] = -1 - symbol;
}

function decoderOf(nodes: readonly Node[]): Decoder {
  const steps = new Int32Array(nodes.length << 4);
  for (let state = 0; state < nodes.length; state++) {
    for (let four = 0; four < 16; four++) steps[(state << 4) | four] = stepOf(nodes, state, four);
  }
  const mayEnd = nodes.map(() => false);
  for (let state = 0, bits = 0; bits <= PADDING_BITS_MAX; bits++) {
    mayEnd[state] = true;
    state = (nodes[state] as Node)[1];
  }
  return { steps, mayEnd };
}

function stepOf(nodes: readonly Node[], from: number, four: number): number {
  let state = from;
  let flags = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const next = (nodes[state] as Node)[(four >>> bit) & 1] as number;
    if (next === -1 - END_OF_STRING) return FAILS;
    if (next < 0) flags = EMITS | ((-1 - next) << 8);
    state = Math.max(0, next);
  }
  return state | flags;
}

function codesOf(text: string): number[] {
  return [...text].map((character) => character.charCodeAt(0));
}
