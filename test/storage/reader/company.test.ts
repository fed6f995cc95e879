import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Company } from '../../../storage/reader/company.js';

test('a heavy read has company for a fifth of a second after a quick one, and none before the first', () => {
  const company = new Company();
  assert.equal(company.isThere(1), false);
  company.note(true, 1000, 1001);
  assert.equal(company.isThere(1201), true);
  assert.equal(company.isThere(1202), false);
});

test('heavy reads alone are no company for one another', () => {
  const company = new Company();
  company.note(false, 1000, 1100);
  assert.equal(company.isThere(1100), false);
});

test('the time of a heavy read does not count, as quick ones could not be heard', () => {
  const company = new Company();
  company.note(true, 1000, 1000);
  company.note(false, 1150, 1900);
  assert.equal(company.isThere(1900), true);
  assert.equal(company.isThere(1951), false);
});
