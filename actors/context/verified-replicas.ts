/** Says which replicas' databases are damaged: the answers of the check at start first, a fresh check afterwards. */

/** Checks databases in a process of their own, as a torn one can take its process down. Result: folder → what is wrong with it, null for nothing. */
export type VerifyReplicas = (folders: readonly string[]) => Promise<ReadonlyMap<string, string | null>>;

export class VerifiedReplicas {
  readonly #fresh = new Map<string, string | null>();

  constructor(readonly verify: VerifyReplicas) {}

  /** Checks all of `folders` at once, for the first `check` of each. */
  async prepare(folders: readonly string[]): Promise<void> {
    if (folders.length === 0) return;
    const damaged = await this.verify(folders);
    for (const folder of folders) this.#fresh.set(folder, damaged.get(folder) ?? null);
  }

  /** What is wrong with the replica at `folder`, null for nothing. */
  async check(folder: string): Promise<string | null> {
    const fresh = this.#fresh.get(folder);
    this.#fresh.delete(folder);
    if (fresh !== undefined) return fresh;
    return (await this.verify([folder])).get(folder) ?? null;
  }
}
