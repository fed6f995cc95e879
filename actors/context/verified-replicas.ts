/**
 * Checks databases in a separate process, as a torn one can crash its process. Result: the damage of each folder's database, null if it has
 * none.
 */
export type VerifyReplicas = (folders: readonly string[]) => Promise<ReadonlyMap<string, string | null>>;

/** Tells which replicas' databases are damaged. */
export class VerifiedReplicas {
  constructor(readonly verify: VerifyReplicas) {}

  /** The damage of the replica's database at `folder`; null if there is none. */
  async check(folder: string): Promise<string | null> {
    return (await this.verify([folder])).get(folder) ?? null;
  }
}
