/** The dashboard of one node, in a real browser. */

import assert from 'node:assert/strict';
import { get } from 'node:http';
import { after, before, type TestContext, test } from 'node:test';
import { type RunningNode, startNodeProcess } from '../../ops/node-process.js';
import { RestClient } from '../../ops/rest-client.js';
import { claimsOf, signToken } from '../../web/model/token.js';
import { temporaryFolder } from '../process/support.js';
import { closeBrowser, openDashboard, withoutChromium } from './chromium.js';

const PAGES = [
  'collections',
  'collections/colours/points',
  'collections/colours/map',
  'collections/colours/info',
  'collections/colours/replicas',
  'collections/colours/optimizations',
  'collections/colours/snapshots',
  'console',
  'cluster',
  'transfers',
  'snapshots',
  'advice',
  'slow',
  'actors',
  'metrics',
  'jwt',
];
const skip = withoutChromium;
let node: RunningNode;
let client: RestClient;

before(async (t) => {
  if (skip) return;
  const environment = { SERVICE__SERVICE__SLOW_REQUEST_MS: '1' };
  node = await startNodeProcess({ folder: await temporaryFolder(t as TestContext), environment });
  client = new RestClient(node.port);
  await client.result('PUT', '/collections/colours', { vectors: { size: 3, distance: 'Cosine' } });
  await client.result('PUT', '/collections/colours/index?wait=true', { field_name: 'name', field_schema: 'keyword' });
  const points = Array.from({ length: 60 }, (_, id) => ({
    id,
    vector: [1 + Math.cos(id), 1 + Math.sin(id), 1 + (id % 3)],
    payload: { name: ['red', 'green', 'blue'][id % 3], page: 'https://example.org/colour', place: id },
  }));
  await client.result('PUT', '/collections/colours/points?wait=true', { points });
});

after(async () => {
  if (skip) return;
  client.close();
  await closeBrowser();
  await node.end('SIGKILL');
});

test('every page can be used by keyboard and screen reader, light and dark, and on a phone', { skip }, async (t) => {
  const light = await openDashboard(t, node.url);
  const dark = await openDashboard(t, node.url, { dark: true });
  const phone = await openDashboard(t, node.url, { width: 390 });
  for (const path of PAGES) {
    await Promise.all([light.go(path), dark.go(path), phone.go(path)]);
    await Promise.all([light, dark].map((dashboard) => dashboard.untilLoaded()));
    await light.checkAccess();
    await dark.checkAccess();
    const overflow = await phone.page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    assert.ok(overflow <= 0, `${path} is ${overflow} pixels wider than a phone`);
  }
});

test('a browser that opens the node gets the dashboard, a client the JSON as before', { skip }, async (t) => {
  const { page } = await openDashboard(t, node.url);
  await page.goto(node.url);
  await page.getByRole('heading', { level: 1, name: 'Collections' }).first().waitFor();
  assert.match(page.url(), /\/dashboard/);
  assert.match((await client.call('GET', '/')).text, /"title":"troupe/);
  const html = await (await fetch(`${node.url}/dashboard`)).text();
  const paths = [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
  const files = await Promise.all(paths.map((path) => fetch(`${node.url}${path}`, { headers: { 'accept-encoding': 'gzip' } })));
  const bytes = files.reduce((sum, file) => sum + Number(file.headers.get('content-length')), 0);
  assert.ok(
    files.every((file) => file.headers.get('content-encoding') === 'gzip'),
    'programs are packed',
  );
  assert.ok(paths.length <= 4 && bytes < 100_000, `the first view waits for ${paths.length} files of ${bytes} bytes`);
  assert.match((await Promise.all(files.map((file) => file.text()))).join(), /Collections/);
});

test('an operation of the API has an address, and its example can be sent, also where an answer would go on for ever', {
  skip,
}, async (t) => {
  const { page } = await openDashboard(t, node.url);
  await page.goto(`${node.url}/docs#telemetry_events`);
  const operation = page.locator('#telemetry_events');
  await operation.getByRole('button', { name: 'Send' }).first().click();
  await operation
    .getByText(/event: ready/)
    .first()
    .waitFor();
});

test('each page of a node that others reach without a key says so', { skip }, async (t) => {
  const environment = { SERVICE__SERVICE__HOST: '0.0.0.0' };
  const open = await startNodeProcess({ folder: await temporaryFolder(t), environment });
  t.after(() => open.end('SIGKILL'));
  const { page, go, checkAccess } = await openDashboard(t, open.url);
  for (const path of ['collections', 'jwt']) {
    await go(path);
    await page.getByRole('alert').getByText('key').first().waitFor();
  }
  await checkAccess();
});

test('a node with a key asks for it once, keeps it out of every address, and shows a token what it may see', { skip }, async (t) => {
  const environment = { SERVICE__SERVICE__API_KEY: 'a-key-for-tests', SERVICE__SERVICE__JWT_RBAC: 'true' };
  const locked = await startNodeProcess({ folder: await temporaryFolder(t), environment });
  t.after(() => locked.end('SIGKILL'));
  for (const name of ['mine', 'foreign']) {
    const headers = { 'api-key': 'a-key-for-tests' };
    const body = JSON.stringify({ vectors: { size: 2, distance: 'Dot' } });
    assert.equal((await fetch(`${locked.url}/collections/${name}`, { method: 'PUT', headers, body })).status, 200);
  }
  const { page } = await openDashboard(t, locked.url);
  const addresses: string[] = [];
  page.on('request', (request) => addresses.push(request.url()));
  const enter = async (credential: string): Promise<void> => {
    await page.getByLabel('API key or token').fill(credential);
    await page.getByRole('button', { name: 'Use it' }).click();
  };
  await page.goto(`${locked.url}/dashboard`);
  await enter('another-key');
  await page.getByRole('dialog').getByRole('alert').first().waitFor();
  await enter('a-key-for-tests');
  await page.getByRole('link', { name: 'foreign' }).first().waitFor();
  const claims = claimsOf(
    { level: 'collection-read', collections: ['mine'], expiresInSec: 600, exists: null },
    Math.floor(Date.now() / 1000),
  );
  const token = signToken(claims, 'a-key-for-tests');
  await page.getByRole('button', { name: 'Change the key' }).click();
  await enter(token);
  await page.getByRole('link', { name: 'foreign' }).first().waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'mine' }).first().waitFor();
  assert.deepEqual(
    addresses.filter((address) => address.includes('key-for-tests') || address.includes(token)),
    [],
  );
});

test('a collection is created, told apart and deleted only by its name', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await go('collections');
  await page.getByRole('button', { name: 'Create a collection' }).click();
  await page.getByLabel('Name', { exact: true }).fill('short lived');
  await page.getByLabel('Numbers in a vector').fill('2');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('link', { name: 'short lived' }).first().waitFor();
  await page.getByRole('button', { name: 'Delete short lived' }).click();
  const act = page.getByRole('dialog').getByRole('button', { name: 'Delete' });
  assert.equal(await act.isDisabled(), true);
  await page.getByLabel("Type the collection's name").fill('short lived');
  await act.click();
  await page.getByRole('link', { name: 'short lived' }).first().waitFor({ state: 'detached' });
  assert.match((await client.call('GET', '/collections/short%20lived/exists')).text, /"exists":false/);
  await go('collections/short%20lived/points');
  await page.getByRole('alert').getByText('exist').first().waitFor();
});

test('points are filtered, edited, compared and drawn', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await go('collections/colours/points');
  await page.getByLabel('Field').fill('name');
  await page.getByLabel('Value').fill('red');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('article', { name: 'Point 1', exact: true }).first().waitFor({ state: 'detached' });
  await page.getByRole('article', { name: 'Point 3', exact: true }).getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Payload as JSON').fill('{"name": "red", "seen": true}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('article', { name: 'Point 3', exact: true }).getByText('seen').first().waitFor();
  await page.getByRole('article', { name: 'Point 3', exact: true }).getByRole('button', { name: 'Similar' }).click();
  await page.getByText('Points similar to 3, the nearest first.').first().waitFor();
  await page.getByRole('article', { name: 'Point 3', exact: true }).first().waitFor({ state: 'detached' });
  await go('collections/colours/map');
  // A thread reads the points and finds their places, so that the page answers meanwhile.
  const thread = page.waitForEvent('worker');
  await page.getByRole('button', { name: 'Draw' }).click();
  await thread;
  await page.getByRole('img', { name: '60 points on a plane' }).first().waitFor();
  await page.getByText('green', { exact: true }).last().waitFor();
});

test('the console proposes paths and fields by the description of the API, sends, and remembers', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await go('console');
  const editor = page.getByRole('combobox', { name: 'Method and path' });
  await editor.fill('POST /collections/colours/points/cou');
  await editor.press('End');
  await editor.pressSequentially('n');
  await page.getByRole('option', { name: '/collections/colours/points/count' }).first().waitFor();
  await editor.press('Enter');
  await editor.press('End');
  await editor.pressSequentially('\n{"exa');
  await page.getByRole('option', { name: 'exact' }).first().waitFor();
  await editor.press('Tab');
  await editor.pressSequentially('true}');
  assert.equal(await editor.inputValue(), 'POST /collections/colours/points/count\n{"exact": true}');
  await editor.press('Control+Enter');
  await page.getByText('"count": 60').first().waitFor();
  await page.reload();
  assert.equal(await editor.inputValue(), 'POST /collections/colours/points/count\n{"exact": true}');
});

test('proposals come when the description of the API arrives after what was written', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  let written = (): void => {};
  const isWritten = new Promise<void>((resolve) => {
    written = resolve;
  });
  await page.route('**/openapi.json', async (route) => {
    await isWritten;
    await route.continue();
  });
  await go('console');
  const editor = page.getByRole('combobox', { name: 'Method and path' });
  await editor.fill('POST /collections/colours/points/cou');
  const proposal = page.getByRole('option', { name: '/collections/colours/points/count' });
  assert.equal(await proposal.count(), 0);
  written();
  await proposal.first().waitFor();
});

test('what is asked for once is asked for when a page that was opened behind others is seen', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await page.addInitScript("Object.defineProperty(document, 'hidden', { value: true, configurable: true })");
  await go('console');
  const editor = page.getByRole('combobox', { name: 'Method and path' });
  await editor.fill('POST /collections/colours/points/cou');
  const asked = page.waitForRequest('**/openapi.json');
  await page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))");
  await asked;
  await page.getByRole('option', { name: '/collections/colours/points/count' }).first().waitFor();
});

test('the console shows how a query was carried out, and makes the index that is advised', { skip }, async (t) => {
  const points = Array.from({ length: 1500 }, (_, id) => ({ id, vector: [1 + (id % 5), 1 + (id % 7), 1], payload: { shelf: id % 50 } }));
  await client.result('PUT', '/collections/shelves', { vectors: { size: 3, distance: 'Cosine' } });
  await client.result('PUT', '/collections/shelves/points?wait=true', { points });
  const { page, go, checkAccess } = await openDashboard(t, node.url);
  await go('console');
  const body = '{"query": [1, 2, 3], "limit": 3, "filter": {"must": [{"key": "shelf", "match": {"value": 7}}]}}';
  await page.getByRole('combobox', { name: 'Method and path' }).fill(`POST /collections/shelves/points/query\n${body}`);
  await page.getByRole('button', { name: 'Explain' }).click();
  const explained = page.getByRole('region', { name: 'How it was carried out' });
  // On a busy machine a reader leaves the read to another one halfway, which may know the filter from before.
  await explained
    .getByText(
      /^(“shelf match 7” has no index that helps, so payloads decided it|The rows that pass the filter were known from an earlier request)\.$/,
    )
    .first()
    .waitFor();
  await checkAccess();
  await page.getByRole('button', { name: 'Make this index of shelf' }).click();
  await page.getByRole('dialog').getByText('"field_schema": "integer"').first().waitFor();
  await page.getByRole('button', { name: 'Make it' }).click();
  await page.getByText('The index is made.').first().waitFor();
  await page.getByRole('button', { name: 'Explain' }).click();
  await explained.getByText('“shelf match 7” was answered by the integer index, 30 rows.').first().waitFor();
  await page.getByRole('button', { name: 'Make this index of shelf' }).first().waitFor({ state: 'detached' });
});

test('a request that took long is shown with its plan and the ids that its client gave it', { skip }, async (t) => {
  const searches = Array.from({ length: 60 }, () => ({ query: [1, 2, 3], limit: 3, params: { exact: true } }));
  const headers = { 'content-type': 'application/json', 'x-request-id': 'slow-7' };
  await fetch(`${node.url}/collections/colours/points/query/batch`, { method: 'POST', headers, body: JSON.stringify({ searches }) });
  const { page, go, checkAccess } = await openDashboard(t, node.url);
  await go('slow');
  const row = page.getByRole('row').filter({ hasText: 'request slow-7' });
  await row.getByText('query_batch_points').first().waitFor();
  await row.getByText('exact search asked for').first().waitFor();
  await checkAccess();
});

test('a snapshot is made and restored under another name', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await go('collections/colours/snapshots');
  await page.getByRole('button', { name: 'Make a snapshot' }).click();
  await page.getByRole('button', { name: 'Restore', exact: true }).click();
  await page.getByLabel('Into the collection').fill('again');
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('dialog').first().waitFor({ state: 'detached' });
  assert.match((await client.call('POST', '/collections/again/points/count', {})).text, /"count":60/);
  await client.call('DELETE', '/collections/again');
});

test('a snapshot of the whole storage is made and deleted', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await go('snapshots');
  await page.getByRole('button', { name: 'Make a snapshot' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('There are no snapshots of the storage on this node.').first().waitFor();
});

test('a filter that reads payloads becomes advice, and its button makes the index', { skip }, async (t) => {
  await client.result('PUT', '/collections/scanned', {
    vectors: { size: 1, distance: 'Dot' },
    optimizers_config: { indexing_threshold: 1, max_optimization_threads: 0 },
  });
  const points = Array.from({ length: 1000 }, (_, id) => ({ id, vector: [id], payload: { shelf: id % 7 } }));
  await client.result('PUT', '/collections/scanned/points?wait=true', { points });
  const filter = { must: [{ key: 'shelf', match: { value: 3 } }] };
  await client.result('POST', '/collections/scanned/points/count', { exact: true, filter });
  const { page, go, checkAccess } = await openDashboard(t, node.url);
  await go('advice');
  await page.getByText('Optimizations are due').first().waitFor();
  const card = page.getByRole('article', { name: 'UNINDEXED_FIELD/scanned/shelf' });
  await card
    .getByText(/requests?, \d,000 payloads/)
    .first()
    .waitFor();
  await checkAccess();
  await card.getByRole('button', { name: 'Make the index' }).click();
  await page.getByText('"field_schema": "integer"').first().waitFor();
  await page.getByRole('button', { name: 'Send' }).click();
  await card.first().waitFor({ state: 'detached' });
  assert.match((await client.call('GET', '/collections/scanned')).text, /"shelf":\{"data_type":"integer"/);
  await client.result('DELETE', '/collections/scanned');
});

test('the flight recorder shows what an actor did last', { skip }, async (t) => {
  const { page, go } = await openDashboard(t, node.url);
  await go('actors');
  await page.getByRole('button', { name: 'colours' }).click();
  const recorder = page.getByRole('region', { name: 'Actor /node/colours', exact: true });
  await recorder.getByText('shardOpened').first().waitFor();
});

test('no path under /dashboard leads out of its folder', { skip: false }, async (t) => {
  const own = skip ? await startNodeProcess({ folder: await temporaryFolder(t) }) : node;
  const statuses: Record<string, number> = {};
  for (const path of [
    '/..%2fops/main.js',
    '/%2e%2e/ops/main.js',
    '/../ops/main.js',
    '/..%5cops%5cmain.js',
    '/assets',
    '/index.html%00',
    '//etc/passwd',
    '/%252e%252e/ops',
  ])
    statuses[path] = await statusOf(`${own.url}/dashboard`, path);
  assert.deepEqual([...new Set(Object.values(statuses))], [404], JSON.stringify(statuses));
  assert.equal(await statusOf(`${own.url}/dashboard`, ''), 200);
  if (skip) await own.end('SIGKILL');
});

/** As it is written: `fetch` would resolve the dots. */
function statusOf(base: string, path: string): Promise<number> {
  const { hostname, port, pathname } = new URL(base);
  return new Promise((resolve, reject) => {
    const asking = get({ hostname, port, path: `${pathname}${path}` }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.on('error', reject);
  });
}
