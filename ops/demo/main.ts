/**
 * The demonstration behind `npm run demo`: starts a node, teaches it handwritten digits, asks for the nearest ones to
 * digits it has never seen, kills it, starts it again and asks once more. Leaves nothing behind.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { type RunningNode, startNodeProcess } from '../node-process.js';
import { RestClient } from '../rest-client.js';
import { bold, dim, type Picture, picture, sideBySide } from './picture.js';

const DATA = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'ops', 'demo', 'data');
const PIXELS = 28 * 28;
const COLLECTION = 'digits';
const BATCH = 500;
const INDEXING_THRESHOLD_KB = 2000;
/** What is below the threshold may stay without a graph: it is searched by scanning. */
const REST_MAX = Math.ceil((INDEXING_THRESHOLD_KB * 1024) / (PIXELS * 4));
const SHOWN = 3;
/** Which of the unseen images are asked for: ones that are nice to look at. */
const ASKED = [11, 60, 120];

interface Neighbour {
  readonly id: number;
  readonly score: number;
  readonly payload: { readonly label: number };
}

interface Question {
  readonly title: string;
  readonly image: number;
  readonly body: unknown;
}

const digits = gunzipSync(readFileSync(join(DATA, 'digits-4000x784.u8.gz')));
const labels = readFileSync(join(DATA, 'labels-4000.u8'));
const unseen = gunzipSync(readFileSync(join(DATA, 'queries-200x784.u8.gz')));

const folder = mkdtempSync(join(tmpdir(), 'troupe-demo-'));
/** Assigned inside of functions, which the compiler doesn't follow. */
let node = null as RunningNode | null;
try {
  await demonstrate();
} finally {
  await node?.end('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
}
process.exit(process.exitCode ?? 0);

async function demonstrate(): Promise<void> {
  node = await startNodeProcess({ folder });
  say(`${bold('A node')} on port ${node.port}, ready after ${node.readyMs.toFixed(0)} ms, with an empty folder.`);
  let client = new RestClient(node.port);
  await upload(client);

  const questions = ASKED.flatMap(questionsFor);
  const before = await answers(client, questions);
  questions.forEach((question, i) => {
    show(question, before[i] ?? []);
  });

  say(`${bold('kill -9')} ${node.pid}: no farewell, no flush.`);
  client.close();
  await node.end('SIGKILL');
  node = await startNodeProcess({ folder });
  say(`A new process on the same folder is ready after ${node.readyMs.toFixed(0)} ms.`);
  client = new RestClient(node.port);
  const after = await answers(client, questions);
  client.close();
  const last = questions.length - 1;
  show(questions[last] as Question, after[last] ?? []);
  if (isDeepStrictEqual(after, before)) {
    say(bold(`All ${questions.length} answers are the same as before, with the same distances.`));
    return;
  }
  say(bold('The answers differ from those before!'));
  process.exitCode = 1;
}

async function upload(client: RestClient): Promise<void> {
  await client.result('PUT', `/collections/${COLLECTION}`, {
    vectors: { size: PIXELS, distance: 'Euclid' },
    optimizers_config: { indexing_threshold: INDEXING_THRESHOLD_KB },
  });
  for (const [field, type] of Object.entries({ label: 'integer', even: 'bool', ink: 'float' })) {
    await client.result('PUT', `/collections/${COLLECTION}/index?wait=true`, { field_name: field, field_schema: type });
  }
  const started = performance.now();
  for (let from = 0; from < labels.length; from += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, labels.length - from) }, (_, i) => pointFor(from + i));
    await client.result('PUT', `/collections/${COLLECTION}/points?wait=true`, { points });
  }
  const seconds = (performance.now() - started) / 1000;
  say(
    `${labels.length.toLocaleString('en')} digits of 28 × 28 pixels stored, each batch on disk when it was acknowledged: ${seconds.toFixed(1)} s.`,
  );
  await untilIndexed(client);
  say('Their graph is built. Now for digits that are not among them.');
}

function pointFor(row: number): unknown {
  const image = digits.subarray(row * PIXELS, (row + 1) * PIXELS);
  const label = labels[row] as number;
  const ink = image.reduce((sum, grey) => sum + grey, 0) / (255 * PIXELS);
  return { id: row, vector: [...image], payload: { label, even: label % 2 === 0, ink: Math.round(ink * 1000) / 1000 } };
}

async function untilIndexed(client: RestClient): Promise<void> {
  for (;;) {
    const info = await client.result<{ status: string; indexed_vectors_count: number }>('GET', `/collections/${COLLECTION}`);
    if (info.status === 'green' && info.indexed_vectors_count >= labels.length - REST_MAX) return;
    await new Promise((done) => setTimeout(done, 50));
  }
}

function questionsFor(image: number): Question[] {
  const query = [...unseen.subarray(image * PIXELS, (image + 1) * PIXELS)];
  const ask = { query, limit: SHOWN, with_payload: ['label'] };
  return [
    { title: 'Nearest of all', image, body: ask },
    {
      title: 'The same digit, nearest among odd digits with little ink',
      image,
      body: {
        ...ask,
        filter: {
          must: [
            { key: 'even', match: { value: false } },
            { key: 'ink', range: { lt: 0.12 } },
          ],
        },
      },
    },
  ];
}

function answers(client: RestClient, questions: readonly Question[]): Promise<Neighbour[][]> {
  return Promise.all(
    questions.map(async (question) => {
      const path = `/collections/${COLLECTION}/points/query`;
      return (await client.result<{ points: Neighbour[] }>('POST', path, question.body)).points;
    }),
  );
}

function show(question: Question, neighbours: readonly Neighbour[]): void {
  const pictures: Picture[] = [
    picture(unseen.subarray(question.image * PIXELS), [bold('unseen'), '']),
    ...neighbours.map((point) =>
      picture(digits.subarray(point.id * PIXELS), [
        bold(String(point.payload.label)),
        dim(`distance ${point.score.toFixed(0)}, id ${point.id}`),
      ]),
    ),
  ];
  console.log(`${question.title}:\n${sideBySide(pictures)}\n`);
}

function say(text: string): void {
  console.log(`${text}\n`);
}
