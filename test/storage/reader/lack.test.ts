import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorFacts, TroupeError } from '../../../protocols/errors.js';
import { lacking } from '../../../storage/disk/machine.js';
import { LACK_RETRY_MS, lackAsUnavailable } from '../../../storage/reader/lack.js';

const systemError = (code: string) => Object.assign(new Error(code), { code });

test('a file that cannot be opened for now makes a read unavailable, with what to do', () => {
  const cause = systemError('EMFILE');
  const facts = errorFacts(lackAsUnavailable(new TroupeError('storage', 'rows/3: cannot be opened (EMFILE)', { cause })));
  assert.equal(facts.code, 'unavailable');
  assert.equal(facts.retryAfterMs, LACK_RETRY_MS);
  assert.match(facts.detail, /^rows\/3: cannot be opened \(EMFILE\); .*`ulimit -n`/);
});

test('a lack that was found before anything was opened keeps its figures', () => {
  const facts = errorFacts(lackAsUnavailable(lacking('cannot open data.mdb: 3 more files can be opened', systemError('EMFILE'))));
  assert.deepEqual([facts.code, facts.detail], ['unavailable', 'cannot open data.mdb: 3 more files can be opened']);
});

test('damage and other errors stay what they are', () => {
  const errors = [
    new TroupeError('storage', 'torn', { reason: 'damaged', cause: systemError('EMFILE') }),
    new TroupeError('storage', 'rows/3: cannot be read (EIO)', { cause: systemError('EIO') }),
    new TroupeError('notFound', 'no point 3'),
    systemError('EMFILE'),
  ];
  for (const error of errors) assert.equal(lackAsUnavailable(error), error);
});
