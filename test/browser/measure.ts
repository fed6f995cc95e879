/**
 * How long one waits for the dashboard in a real Chromium: `npm run bench -- --dashboard`. The first view from an empty cache, and a map of
 * 50,000 points × 128, with the longest time for which the page answered nothing meanwhile. Prints tables.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { table, whole } from '../../ops/bench/common/table.js';
import { startNodeProcess } from '../../ops/node-process.js';
import { RestClient } from '../../ops/rest-client.js';
import { closeBrowser, launchBrowser, withoutChromium } from './chromium.js';

const POINTS = 50_000;
const DIM = 128;
const BATCH = 1000;
const VIEWS = 5;
const MAPS = 3;

/** What runs in the page is text: the compiler knows no browser here. */
const LOOK_AT_FIRST_VIEW = `(() => {
  const listMs = performance.now();
  const files = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const paintMs = performance.getEntriesByName('first-contentful-paint')[0].startTime;
  return { paintMs, listMs, requests: files.length, bytes: files.reduce((sum, { transferSize }) => sum + transferSize, 0) };
})()`;
/** Notes when the points were read, and how far apart frames were. */
const WATCH_FRAMES = `(() => {
  const startMs = performance.now();
  let [lastMs, readMs, readStillMs, placeStillMs] = [startMs, 0, 0, 0];
  const look = () => {
    const nowMs = performance.now();
    const text = document.querySelector('[role=status]')?.textContent ?? '';
    if (readMs === 0) readStillMs = Math.max(readStillMs, nowMs - lastMs);
    else placeStillMs = Math.max(placeStillMs, nowMs - lastMs);
    if (readMs === 0 && text.startsWith('Finding')) readMs = nowMs - startMs;
    lastMs = nowMs;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  window.watched = () => ({ readMs, placeMs: performance.now() - startMs - readMs, readStillMs, placeStillMs });
})()`;

if (withoutChromium) {
  process.stderr.write(`${withoutChromium}\n`);
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), 'troupe-measure-dashboard-'));
const node = await startNodeProcess({ folder });
const client = new RestClient(node.port);
try {
  await upload();
  const views: FirstView[] = [];
  for (let round = 0; round < VIEWS; round++) views.push(await firstView());
  print('first view', [
    ['first paint, ms', views.map(({ paintMs }) => paintMs)],
    ['list of collections, ms', views.map(({ listMs }) => listMs)],
    ['requests until then', views.map(({ requests }) => requests)],
    ['bytes until then', views.map(({ bytes }) => bytes)],
  ]);
  const maps: MapView[] = [];
  for (let round = 0; round < MAPS; round++) maps.push(await mapView());
  print(`map of ${whole(POINTS)} points × ${DIM}`, [
    ['reading the points, ms', maps.map(({ readMs }) => readMs)],
    ['finding their places and drawing, ms', maps.map(({ placeMs }) => placeMs)],
    ['longest time without a frame: reading, ms', maps.map(({ readStillMs }) => readStillMs)],
    ['… finding places and drawing, ms', maps.map(({ placeStillMs }) => placeStillMs)],
  ]);
} finally {
  client.close();
  await closeBrowser();
  await node.end('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

async function upload(): Promise<void> {
  await client.result('PUT', '/collections/places', {
    vectors: { size: DIM, distance: 'Dot' },
    optimizers_config: { indexing_threshold: 0 },
  });
  let state = 1;
  const next = (): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
  for (let from = 0; from < POINTS; from += BATCH) {
    const points = Array.from({ length: BATCH }, (_, at) => ({
      id: from + at,
      vector: Array.from({ length: DIM }, () => (at % 10) * 0.1 + next()),
      payload: { group: at % 10 },
    }));
    await client.result('PUT', '/collections/places/points?wait=true', { points });
  }
}

interface FirstView {
  readonly paintMs: number;
  readonly listMs: number;
  readonly requests: number;
  readonly bytes: number;
}

async function newPage(): Promise<Page> {
  const context = await (await launchBrowser()).newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
  return context.newPage();
}

async function firstView(): Promise<FirstView> {
  const page = await newPage();
  await page.goto(`${node.url}/dashboard`);
  await page.getByRole('link', { name: 'places' }).waitFor();
  const view = await page.evaluate<FirstView>(LOOK_AT_FIRST_VIEW);
  await page.context().close();
  return view;
}

interface MapView {
  readonly readMs: number;
  readonly placeMs: number;
  readonly readStillMs: number;
  readonly placeStillMs: number;
}

async function mapView(): Promise<MapView> {
  const page = await newPage();
  await page.goto(`${node.url}/dashboard#/collections/places/map`);
  await page.getByRole('combobox', { name: 'Points', exact: true }).selectOption(String(POINTS));
  await page.evaluate(WATCH_FRAMES);
  await page.getByRole('button', { name: 'Draw' }).click();
  await page.getByRole('img', { name: /points on a plane/ }).waitFor({ timeout: 120_000 });
  const view = await page.evaluate<MapView>('window.watched()');
  await page.context().close();
  return view;
}

function print(title: string, rows: readonly (readonly [string, readonly number[]])[]): void {
  const lines = table(
    [title, 'median', 'least', 'most'],
    rows.map(([name, values]) => {
      const sorted = [...values].sort((one, other) => one - other);
      const shown = [sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1)];
      return [name, ...shown.map((value) => whole(value ?? 0))];
    }),
  );
  process.stdout.write(`${lines.join('\n')}\n\n`);
}
