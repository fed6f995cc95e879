/** How much memory a replica's files take once they are open, without opening them. */

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type CollectionConfig, vectorsByName } from '../../protocols/model/collection.js';

/** Originals, codes and graphs; what an index of a field has is read where it lies. */
const LOADED = /^(?:rows|vectors\.|codes\.|graph\.|lists\.|tokens\.|sparse\.)/;

/** Bytes. Codes that lists read from their file count nothing. A file that goes away meanwhile counts nothing. */
export async function loadedBytes(folder: string, config: CollectionConfig): Promise<number> {
  const vectors = [...vectorsByName(config.params.vectors).values()];
  const onDisk = vectors.length > 0 && vectors.every(({ on_disk }) => on_disk === true);
  const rows = await sizesIn(join(folder, 'rows'), () => true);
  const segments = await names(join(folder, 'segments'));
  const isLoaded = (name: string) => LOADED.test(name) && !(onDisk && name.startsWith('vectors.'));
  const sealed = await Promise.all(segments.map((name) => sizesIn(join(folder, 'segments', name), isLoaded)));
  return sealed.reduce((sum, bytes) => sum + bytes, rows);
}

async function sizesIn(folder: string, isCounted: (name: string) => boolean): Promise<number> {
  const all = await names(folder);
  const counted = all.filter((name) => isCounted(name) && !(name.startsWith('codes.') && all.includes(name.replace('codes', 'lists'))));
  const sizes = await Promise.all(
    counted.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

function names(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
