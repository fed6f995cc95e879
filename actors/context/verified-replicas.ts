/** Tells which replicas' databases are damaged: by the check at start first, by a new check after that. */

/**
 * Checks databases in a separate process, as a torn one can crash its process. Result: the damage of each folder's database, null if it has
 * none.
 */
export type VerifyReplicas = (folders: readonly string[]) => Promise<ReadonlyMap<string, string | null>>;

export class VerifiedReplicas {
  readonly #fresh = new Map<string, string | null>();

  constructor(readonly verify: VerifyReplicas) {}

  /** Checks all of `folders` at once; the first `check` of each uses the result. */
  async prepare(folders: readonly string[]): Promise<void> {
    if (folders.length === 0) return;
    const damaged = await this.verify(folders);
    for (const folder of folders) this.#fresh.set(folder, damaged.get(folder) ?? null);
  }

  /** The damage of the replica's database at `folder`; null if there is none. */
  async check(folder: string): Promise<string | null> {
    const fresh = this.#fresh.get(folder);
    this.#fresh.delete(folder);
    if (fresh !== undefined) return fresh;
    return (await this.verify([folder])).get(folder) ?? null;
  }
}
