import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effortNs, HEAVY_NS, type Work } from '../../query/effort.js';

const quick: Readonly<Record<string, Work>> = {
  'a body with a vector of 784 numbers': { kind: 'decode', bytes: 15_000 },
  'a search through a graph': { kind: 'planned', ns: 200_000 },
  '200 candidates of 784 float32': { kind: 'score', rows: 200, bytes: 3136, others: 1 },
  '100 multivectors with 32 of the query': { kind: 'maxSim', vectors: 100 * 10, bytes: 512, others: 16 },
  'eight rare words': { kind: 'postings', count: 100_000 },
  '100 payloads': { kind: 'payloads', count: 100 },
  'a facet over 20,000 rows': { kind: 'entries', count: 20_000 },
  'ten points with their vectors': { kind: 'show', points: 10, numbers: 784 },
  'a page of 500 points': { kind: 'show', points: 500, numbers: 0 },
};

const heavy: Readonly<Record<string, Work>> = {
  'a batch of a thousand queries': { kind: 'decode', bytes: 10_000_000 },
  'an exact search among 20,000 × 784': { kind: 'planned', ns: 8_000_000 },
  'a recommendation with four examples by all of 20,000 points': { kind: 'score', rows: 20_000, bytes: 512, others: 4 },
  '10,000 multivectors with 32 of the query': { kind: 'maxSim', vectors: 10_000 * 64, bytes: 512, others: 32 },
  'frequent words': { kind: 'postings', count: 1_000_000 },
  'payloads of 20,000 points': { kind: 'payloads', count: 20_000 },
  'a facet over 200,000 rows': { kind: 'entries', count: 200_000 },
  'a hundred points with their vectors': { kind: 'show', points: 100, numbers: 784 },
  'a page of 10,000 points': { kind: 'show', points: 10_000, numbers: 0 },
};

test('what takes a fraction of a millisecond is not heavy', () => {
  for (const [name, work] of Object.entries(quick)) assert.ok(effortNs(work) < HEAVY_NS, `${name}: ${effortNs(work)} ns`);
});

test('what takes milliseconds is heavy: scans, payloads, examples, frequent words, large batches and pages', () => {
  for (const [name, work] of Object.entries(heavy)) assert.ok(effortNs(work) > HEAVY_NS, `${name}: ${effortNs(work)} ns`);
});
