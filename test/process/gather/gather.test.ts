/** A read over shards of many nodes answers what one shard with all points answers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outcome } from '../clients/doors.js';
import { ERRORS } from '../clients/error-cases.js';
import { difference } from '../clients/over-shards.js';
import { READS } from '../clients/read-cases.js';
import { uploadFilms } from '../clients/upload-films.js';
import { gatheringNode } from './gathering-node.js';

const WRITES = /^(upsert|update|delete|set|overwrite|clear|batch|create)_/;

test('a collection whose six shards are on several nodes answers as one of a single shard', async (context) => {
  const one = await gatheringNode(context, 1);
  const six = await gatheringNode(context, 6);
  for (const { doors } of [one, six]) await uploadFilms(doors);

  await context.test('reads of every kind, through both doors', async (t) => {
    const differences: string[] = [];
    for (const [operation, args, collection = 'films'] of READS) {
      const wanted = await one.doors.both(operation, collection, args);
      const found = await six.doors.both(operation, collection, args);
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
    }
    t.diagnostic(`${READS.length} reads, ${six.counts.reads} of them gathered by ${six.counts.asks} questions`);
    assert.deepEqual(differences, []);
    assert.equal(one.counts.reads, 0);
    assert.ok(six.counts.reads > READS.length);
  });

  await context.test('requests that cannot be carried out', async (t) => {
    const differences: string[] = [];
    const reads = ERRORS.filter(([operation]) => !WRITES.test(operation));
    for (const [operation, args, collection = 'films'] of reads) {
      const wanted = await outcome(one.doors.rest(operation, collection, args));
      const found = await outcome(six.doors.rest(operation, collection, args));
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
    }
    t.diagnostic(`${reads.length} errors`);
    assert.deepEqual(differences, []);
  });
});
