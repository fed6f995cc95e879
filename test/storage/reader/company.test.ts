import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effortNsMaxOf } from '../../../query/effort.js';
import { Company, crowdAround } from '../../../storage/reader/company.js';

test('a heavy read has company for a fifth of a second after a quick one, and none before the first', () => {
  const company = new Company(new Int32Array(1));
  assert.equal(company.quickNs(1), null);
  company.note(true, 1000, 1001);
  assert.notEqual(company.quickNs(1201), null);
  assert.equal(company.quickNs(1202), null);
});

test('a read is heavy beside quick ones from a millisecond on, or from four times what these take: those that are alike do not leave one another', () => {
  const company = new Company(new Int32Array(1));
  const limitNs = () => effortNsMaxOf(true, company.quickNs(0));
  for (let read = 0; read < 100; read++) company.note(true, 0, 0.05);
  assert.equal(limitNs(), 1e6);
  for (let read = 0; read < 100; read++) company.note(true, -1, 0);
  assert.ok(limitNs() > 3.9e6 && limitNs() < 4.1e6, String(limitNs()));
  assert.equal(effortNsMaxOf(false, company.quickNs(0)), Number.POSITIVE_INFINITY);
});

test('heavy reads alone are no company for one another', () => {
  const company = new Company(new Int32Array(1));
  company.note(false, 1000, 1100);
  assert.equal(company.quickNs(1100), null);
});

test('the time of a heavy read does not count, as quick ones could not be heard', () => {
  const company = new Company(new Int32Array(1));
  company.note(true, 1000, 1000);
  company.note(false, 1150, 1900);
  assert.notEqual(company.quickNs(1900), null);
  assert.equal(company.quickNs(1951), null);
});

test('a heavy read is crowded while quick ones come, in whichever reader, and threads want all CPUs', () => {
  const quickReads = new Int32Array(1);
  const company = new Company(quickReads);
  let load = '0.20 0.18 0.12 4/80 11206\n';
  const isCrowded = crowdAround(quickReads, 4, () => load);
  assert.equal(isCrowded(), false, 'no quick read');
  company.note(true, 1, 2);
  assert.equal(isCrowded(), true);
  assert.equal(isCrowded(), false, 'none since');
  company.note(false, 2, 9);
  assert.equal(isCrowded(), false, 'heavy ones do not count');
  load = '9.00 8.00 7.00 3/80 11206\n';
  company.note(true, 9, 10);
  assert.equal(isCrowded(), false, 'a CPU is free');
  load = '';
  company.note(true, 10, 11);
  assert.equal(isCrowded(), false, 'the system does not tell');
  const ofUnknown = crowdAround(quickReads, 0, () => load);
  company.note(true, 11, 12);
  assert.equal(ofUnknown(), false, 'nor how many CPUs there are');
});
