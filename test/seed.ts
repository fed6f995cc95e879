/** The seed of tests with made inputs: fixed, so that a failure is one of the change under test; TROUPE_SEED gives another one. */

const FIXED = 20_261;

export function testSeed(): number {
  return Number(process.env.TROUPE_SEED ?? FIXED);
}
