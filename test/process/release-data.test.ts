/** Data of earlier releases, recorded from their own servers (`release-data/record.ts`): a later release opens all of it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../ops/ports.js';
import { unpackFolder } from './release-data/files.js';
import { checkData, checkKeyedData } from './release-data/steps.js';
import { nodeFor, temporaryFolder } from './support.js';

const RECORDED = fileURLToPath(new URL('../../../test/process/release-data/', import.meta.url));

/** Names of the recorded releases. */
const RELEASES = ['0.1.0'];

for (const release of RELEASES) {
  test(`a node opens what release ${release} wrote, logs included`, async (t) => {
    const folder = await temporaryFolder(t);
    unpackFolder(readFileSync(join(RECORDED, `${release}-alone.json.gz`)), join(folder, 'storage'));
    const { client } = await nodeFor(t, { folder });
    await checkData(client);
  });

  test(`a node of a cluster opens what release ${release} wrote: points, the agreed state and the log of consensus`, async (t) => {
    const folder = await temporaryFolder(t);
    unpackFolder(readFileSync(join(RECORDED, `${release}-cluster.json.gz`)), join(folder, 'storage'));
    const [internalPort] = (await freePorts(1)) as [number];
    const environment = {
      SERVICE__CLUSTER__ENABLED: 'true',
      SERVICE__CLUSTER__P2P__PORT: String(internalPort),
      SERVICE_URI: `http://127.0.0.1:${internalPort}`,
    };
    const { client } = await nodeFor(t, { folder, environment });
    await checkData(client);
    await checkKeyedData(client);
  });
}
