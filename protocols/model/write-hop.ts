/** What a write that is part of a trace went through; also from thread to thread and from node to node. */

export interface WriteHop {
  readonly name: string;
  /** Microseconds since the epoch, by the clock of the node that notes it. */
  readonly startUs: number;
  readonly endUs: number;
  readonly facts: Readonly<Record<string, string | number>>;
  /** What it consists of, as far as that is known. */
  readonly hops: readonly WriteHop[];
}

/** Gets what is noted of a write. There is none for a write that is part of no trace, of which nothing is measured. */
export type HopNotes = WriteHop[];

/** The same by the clock of another node. */
export function movedHop(hop: WriteHop, byUs: number): WriteHop {
  return { ...hop, startUs: hop.startUs + byUs, endUs: hop.endUs + byUs, hops: hop.hops.map((inner) => movedHop(inner, byUs)) };
}
