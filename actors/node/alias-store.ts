/** Aliases on disk: `<storage>/aliases.json`. */

import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import { decodeChecked, encodeChecked, replaceFile, syncFolder } from '../../storage/disk/checked-file.js';

const ALIAS_FILE = 'aliases.json';
const DAMAGED_FILE = 'aliases.damaged.json';
const KEY = 'aliases';

/** Stores aliases. Saves and loads happen in the order of the calls. */
export interface AliasStore {
  /** The saved aliases; empty if none were saved. Errors: `storage` if they cannot be read. */
  load(): Promise<AliasMap>;
  /** Saves aliases; they are on disk when it resolves. */
  save(aliases: AliasMap): Promise<void>;
}

/** Errors: `storage`, naming `path`, if the file is damaged. */
export function decodeAliases(bytes: Uint8Array, path: string): AliasMap {
  return new Map(decodeChecked(bytes, KEY, path, 'a list of aliases') as [string, string][]);
}

export class AliasFile implements AliasStore {
  readonly #path: string;
  /** Ends when the newest save has ended; saves and loads take turns. */
  #turn: Promise<unknown> = Promise.resolve();

  /** storagePath: an existing folder. onDamage: gets the reason if aliases are lost; the damaged file is kept under another name. */
  constructor(
    private readonly storagePath: string,
    private readonly onDamage: (error: TroupeError) => void,
  ) {
    this.#path = join(storagePath, ALIAS_FILE);
  }

  /** The saved aliases; empty also if the file is damaged. */
  load(): Promise<AliasMap> {
    return this.#inTurn(async () => {
      const bytes = await readFile(this.#path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw new TroupeError('storage', `${this.#path} cannot be read: ${error.message}`, { cause: error });
      });
      if (bytes === null) return new Map();
      try {
        return decodeAliases(bytes, this.#path);
      } catch (error) {
        if (!(error instanceof TroupeError)) throw error;
        const kept = join(this.storagePath, DAMAGED_FILE);
        await rename(this.#path, kept);
        this.onDamage(new TroupeError('storage', `${error.detail}; the node starts without aliases, the file is kept as ${kept}`));
        return new Map();
      }
    });
  }

  save(aliases: AliasMap): Promise<void> {
    return this.#inTurn(async () => {
      await replaceFile(this.#path, encodeChecked(KEY, [...aliases]));
      await syncFolder(this.storagePath);
    });
  }

  #inTurn<Value>(run: () => Promise<Value>): Promise<Value> {
    const result = this.#turn.then(run);
    this.#turn = result.catch(() => {});
    return result;
  }
}
