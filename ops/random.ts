/** Numbers that look random and are the same for the same seed, for benchmarks and tests that can be repeated. */

export interface RandomNumbers {
  /** Uniform in [0, 1). */
  unit(): number;
  /** Uniform integer in 0..below-1. */
  integer(below: number): number;
  /** Normal distribution, mean 0, deviation 1. */
  normal(): number;
}

/** A generator for a seed (any integer). */
export function seededRandom(seed: number): RandomNumbers {
  let state = seed >>> 0;
  let spare = Number.NaN;

  function unit(): number {
    // A Weyl sequence through an avalanche of multiplications and shifts; its period is 2^32.
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000;
  }

  function normal(): number {
    if (!Number.isNaN(spare)) {
      const value = spare;
      spare = Number.NaN;
      return value;
    }
    // Box and Muller: two uniform numbers become two normal ones.
    const radius = Math.sqrt(-2 * Math.log(1 - unit()));
    const angle = 2 * Math.PI * unit();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  return { unit, normal, integer: (below) => Math.floor(unit() * below) };
}
