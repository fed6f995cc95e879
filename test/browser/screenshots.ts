/**
 * Takes the pictures of the README from real pages: `npm run screenshots`. One node with handwritten digits, then three of which one is
 * killed. Prints how soon the first view is there.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { startNodeProcess } from '../../ops/node-process.js';
import { RestClient } from '../../ops/rest-client.js';
import { until } from '../process/support.js';
import { closeBrowser, launchBrowser, withoutChromium } from './chromium.js';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const IMAGES = join(ROOT, 'docs', 'images');
const DATA = join(ROOT, 'ops', 'demo', 'data');
const PIXELS = 28 * 28;
const DIGITS = 4000;
const BATCH = 500;
const VIEW = { width: 1120, height: 700 };
const BYTES_MAX = 150_000;

if (withoutChromium) {
  process.stderr.write(`${withoutChromium}\n`);
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), 'troupe-screenshots-'));
mkdirSync(IMAGES, { recursive: true });
try {
  await ofOneNode(newFolder('one'));
  await ofCluster(newFolder('three'));
} finally {
  await closeBrowser();
  rmSync(folder, { recursive: true, force: true });
}

function newFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

async function ofOneNode(storage: string): Promise<void> {
  const node = await startNodeProcess({ folder: storage });
  const client = new RestClient(node.port);
  try {
    await upload(client);
    const page = await openPage();
    await tellFirstView(page, `${node.url}/dashboard`);
    await page.goto(`${node.url}/dashboard#/collections/digits/map`);
    await page.getByRole('combobox', { name: 'Points', exact: true }).selectOption('5000');
    await page.getByRole('button', { name: 'Draw' }).click();
    await page.getByRole('img', { name: /points on a plane/ }).waitFor();
    // The picture is drawn in the frame after its name is there.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    await shoot(page, 'dashboard-map');
    await page.goto(`${node.url}/dashboard#/actors`);
    await page.getByRole('button', { name: 'digits' }).click();
    await page.getByRole('region', { name: 'Actor /node/digits', exact: true }).waitFor();
    await shoot(page, 'dashboard-actors');
    const filter = { must: [{ key: 'sum', range: { gt: 20_000 } }] };
    for (let round = 0; round < 5; round++) await client.result('POST', '/collections/digits/points/count', { filter, exact: true });
    await page.goto(`${node.url}/dashboard#/advice`);
    await page.getByRole('article').first().waitFor();
    await shoot(page, 'dashboard-advice');
    await page.close();
  } finally {
    client.close();
    await node.end('SIGKILL');
  }
}

async function ofCluster(storage: string): Promise<void> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: storage });
  try {
    const [first, , third] = cluster.nodes as [LocalCluster['nodes'][number], unknown, LocalCluster['nodes'][number]];
    for (const name of ['cities', 'notes']) {
      await first.client.result('PUT', `/collections/${name}`, {
        vectors: { size: 2, distance: 'Dot' },
        shard_number: 3,
        replication_factor: 2,
      });
    }
    const page = await openPage();
    await page.goto(`http://127.0.0.1:${first.port}/dashboard#/cluster`);
    await third.kill();
    const points = Array.from({ length: 300 }, (_, id) => ({ id, vector: [id, 1] }));
    for (const name of ['cities', 'notes'])
      await until(
        () => first.client.call('PUT', `/collections/${name}/points?wait=true`, { points }),
        ({ status }) => status === 200,
      );
    await page
      .getByText(/is Dead: its node cannot be reached/)
      .first()
      .waitFor();
    await shoot(page, 'dashboard-cluster');
    await page.close();
  } finally {
    await cluster.close();
  }
}

async function upload(client: RestClient): Promise<void> {
  const digits = gunzipSync(readFileSync(join(DATA, 'digits-4000x784.u8.gz')));
  const labels = readFileSync(join(DATA, 'labels-4000.u8'));
  await client.result('PUT', '/collections/digits', { vectors: { size: PIXELS, distance: 'Euclid' } });
  for (let from = 0; from < DIGITS; from += BATCH) {
    const points = Array.from({ length: BATCH }, (_, at) => {
      const vector = [...digits.subarray((from + at) * PIXELS, (from + at + 1) * PIXELS)];
      return { id: from + at, vector, payload: { label: labels[from + at], sum: vector.reduce((sum, pixel) => sum + pixel, 0) } };
    });
    await client.result('PUT', '/collections/digits/points?wait=true', { points });
  }
}

async function openPage(): Promise<Page> {
  const context = await (await launchBrowser()).newContext({ viewport: VIEW, colorScheme: 'light' });
  return context.newPage();
}

/** From an empty cache. */
async function tellFirstView(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole('link', { name: 'digits' }).waitFor();
  const milliseconds = await page.evaluate(() => performance.now());
  const [paint] = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint').map(({ startTime }) => startTime));
  process.stdout.write(`first paint after ${Math.round(paint ?? 0)} ms, the list of collections after ${Math.round(milliseconds)} ms\n`);
}

async function shoot(page: Page, name: string): Promise<void> {
  const path = join(IMAGES, `${name}.jpg`);
  await page.screenshot({ path, type: 'jpeg', quality: 82 });
  const { size } = statSync(path);
  process.stdout.write(`${name}.jpg ${size} bytes\n`);
  if (size > BYTES_MAX) throw new Error(`${path} has ${size} bytes, more than ${BYTES_MAX}`);
}
