/** The dashboard of a cluster, while nodes of it come and go. */

import { after, test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { EventReader } from '../process/event-reader.js';
import { temporaryFolder, until } from '../process/support.js';
import { closeBrowser, openDashboard, withoutChromium } from './chromium.js';

after(closeBrowser);

/** Pages that ask other nodes, or show what is known of them. */
const PAGES = [
  'collections/c/points',
  'collections/c/info',
  'collections/c/optimizations',
  'collections/c/snapshots',
  'slow',
  'actors',
  'metrics',
];

test('the dashboard of a cluster shows a killed node and its Dead replicas, their return, a replica that moves, and a node that is cut off', {
  skip: withoutChromium,
}, async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const [first, , third] = cluster.nodes as [LocalCluster['nodes'][number], unknown, LocalCluster['nodes'][number]];
  await first.client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, shard_number: 3, replication_factor: 2 });
  const { page, go, checkAccess, untilLoaded } = await openDashboard(t, `http://127.0.0.1:${first.port}`);
  await go('cluster');
  await page.getByText('node 3', { exact: false }).first().waitFor();
  await checkAccess();
  const events = await EventReader.open(`http://127.0.0.1:${first.port}/telemetry/events?topics=replicas`);
  await events.until('ready', () => true);
  await third.kill();
  // A write finds out that the replicas of the killed node do not answer. One that was on its way to that node is not known to be executed,
  // and clients send it again.
  const points = Array.from({ length: 30 }, (_, id) => ({ id, vector: [id, 1] }));
  await until(
    () => first.client.call('PUT', '/collections/c/points?wait=true', { points }),
    ({ status }) => status === 200,
  );
  await events.until('replicas', ({ group, items }) => group === 'c' && items.some(({ state }) => state === 'Dead'));
  await page
    .getByText(/\d Dead/)
    .first()
    .waitFor();
  await go('collections');
  await page
    .getByText(/replicas (is|are) Dead; the others answer meanwhile/)
    .first()
    .waitFor();
  await go('advice');
  await page
    .getByText(/node \d \(.*\) cannot be reached/)
    .first()
    .waitFor();
  await page
    .getByText(/Shard \d on node \d is Dead: its node cannot be reached/)
    .first()
    .waitFor();
  await checkAccess();
  await go('transfers');
  await page
    .getByText(/waits until its node can be reached/)
    .first()
    .waitFor();
  await checkAccess();
  await go('collections');
  await cluster.start(third.number);
  await page.getByText('Small enough to be searched without an index').first().waitFor();
  events.close();

  await go('collections/c/replicas');
  const menu = page.getByRole('combobox', { name: /^Move the replica of shard 0 on/ }).first();
  const title = (await menu.getAttribute('aria-label')) as string;
  const [target] = await menu.locator('option:not([disabled])').all();
  await menu.selectOption((await target?.getAttribute('value')) as string);
  await page.getByText('"move_shard"').first().waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).first().click();
  await page.getByRole('dialog').first().waitFor({ state: 'detached' });
  await page.getByRole('combobox', { name: title, exact: true }).first().waitFor({ state: 'detached' });
  await checkAccess();

  cluster.partition([1, 2], [third.number]);
  await go('advice');
  const unreached = page.getByText(/node 3 \(.*\) cannot be reached/);
  await unreached.first().waitFor();
  for (const path of PAGES) {
    await go(path);
    await untilLoaded();
  }
  cluster.heal();
  await go('advice');
  await unreached.first().waitFor({ state: 'detached' });
  await go('collections');
  await page.getByText('Small enough to be searched without an index').first().waitFor();
});
