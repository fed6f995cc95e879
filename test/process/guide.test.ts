/** Runs the pages of docs/guide, block by block, and compares what the node says with the answers that are shown there. */

import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LAUNCHER } from '../../ops/node-process.js';
import { checkCurl, type Place, run } from './documents.js';
import { checkAnswer, guideBlocksOf } from './guide-blocks.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

const GUIDE = fileURLToPath(new URL('../../../docs/guide', import.meta.url));
/** On one node without a key, one after the other. */
const OPEN_PAGES = ['first-search', 'hybrid-search', 'filters-and-indexes', 'tenants', 'backup', 'moving'];
/** On a node that a block of the page starts. */
const OWN_NODE_PAGES = ['security'];
/** Run by the test of the README, on its cluster. */
const CLUSTER_PAGES = ['cluster'];
const STARTS_NODE = /npm start\n$/;

test('each page of the guide is run', async () => {
  const pages = (await readdir(GUIDE)).filter((file) => file !== 'README.md').map((file) => file.replace(/\.md$/, ''));
  assert.deepEqual(pages.sort(), [...OPEN_PAGES, ...OWN_NODE_PAGES, ...CLUSTER_PAGES].sort());
});

test('a node does what the guide says', async (t) => {
  await checkCurl();
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  for (const page of OPEN_PAGES) {
    await t.test(page, async (context) => runPage(context, page, () => Promise.resolve(node)));
  }
});

for (const page of OWN_NODE_PAGES) {
  test(`a node that is started as the guide says: ${page}`, async (t) => {
    await checkCurl();
    await runPage(t, page, async (environment) => nodeFor(t, { folder: await temporaryFolder(t), environment }));
  });
}

/** startNode: for a block that does; its variables. On pages without such a block it is asked once, with none. */
async function runPage(
  t: TestContext,
  page: string,
  startNode: (environment: Record<string, string>) => Promise<NodeUnderTest>,
): Promise<void> {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, '.curlrc'), 'silent\nshow-error\nwrite-out = "\\n"\n');
  const place: Place = { folder, environment: { CURL_HOME: folder } };
  const blocks = guideBlocksOf(await readFile(join(GUIDE, `${page}.md`), 'utf8'));
  assert.ok(blocks.length > 0, page);
  let node = blocks.some(({ code }) => STARTS_NODE.test(code)) ? null : await startNode({});
  // Exported variables are those of the reader's terminal, which goes on from block to block.
  let exported = '';
  for (const block of blocks) {
    if (STARTS_NODE.test(block.code)) {
      node = await startNode(await variablesOf(block.code, folder));
      continue;
    }
    const code = block.code.replaceAll('npx troupe', LAUNCHER).replaceAll('localhost:6333', `localhost:${node?.port}`);
    checkAnswer(block, await run(exported + code, place));
    exported += [...code.matchAll(/^export .*\n/gm)].join('');
  }
}

/** `NAME=value` and `NAME=$(cat file)` before a command. */
async function variablesOf(code: string, folder: string): Promise<Record<string, string>> {
  const variables: Record<string, string> = {};
  for (const [, name, value, file] of code.matchAll(/(SERVICE__\w+)=(?:(\w+)|\$\(cat ([\w.]+)\))/g)) {
    variables[name as string] = value ?? (await readFile(join(folder, file as string), 'utf8')).trim();
  }
  return variables;
}
