import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Company, crowdAround } from '../../../storage/reader/company.js';

test('a heavy read has company for a fifth of a second after a quick one, and none before the first', () => {
  const company = new Company(new Int32Array(1));
  assert.equal(company.isThere(1), false);
  company.note(true, 1000, 1001);
  assert.equal(company.isThere(1201), true);
  assert.equal(company.isThere(1202), false);
});

test('heavy reads alone are no company for one another', () => {
  const company = new Company(new Int32Array(1));
  company.note(false, 1000, 1100);
  assert.equal(company.isThere(1100), false);
});

test('the time of a heavy read does not count, as quick ones could not be heard', () => {
  const company = new Company(new Int32Array(1));
  company.note(true, 1000, 1000);
  company.note(false, 1150, 1900);
  assert.equal(company.isThere(1900), true);
  assert.equal(company.isThere(1951), false);
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
