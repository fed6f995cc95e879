/**
 * Records the data that a release writes, for `release-data.test.ts`:
 *
 *     node dist/test/process/release-data/record.js NAME PROGRAM
 *
 * NAME is that of the release, PROGRAM its server (`dist/ops/main.js` or `ops/launch.sh` of a built checkout). The node is
 * killed, so that its logs hold what is not in its segments yet.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startNodeProcess } from '../../../ops/node-process.js';
import { freePorts } from '../../../ops/ports.js';
import { RestClient } from '../../../ops/rest-client.js';
import { packFolder } from './files.js';
import { writeData, writeKeyedData } from './steps.js';

const [name = '', program = ''] = process.argv.slice(2);
const target = fileURLToPath(new URL('../../../../test/process/release-data/', import.meta.url));

for (const kind of ['alone', 'cluster'] as const) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-record-'));
  const [internalPort] = (await freePorts(1)) as [number];
  const environment =
    kind === 'alone'
      ? {}
      : {
          SERVICE__CLUSTER__ENABLED: 'true',
          SERVICE__CLUSTER__P2P__PORT: String(internalPort),
          SERVICE_URI: `http://127.0.0.1:${internalPort}`,
        };
  const node = await startNodeProcess({ folder, program: resolve(program), environment });
  const client = new RestClient(node.port);
  await writeData(client);
  if (kind === 'cluster') await writeKeyedData(client);
  await node.end('SIGKILL');
  client.close();
  const packed = packFolder(join(folder, 'storage'));
  writeFileSync(join(target, `${name}-${kind}.json.gz`), packed);
  console.log(`${name}-${kind}: ${packed.length} bytes`);
  rmSync(folder, { recursive: true, force: true });
}
