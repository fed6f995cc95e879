import assert from 'node:assert/strict';
import type { FileHandle } from 'node:fs/promises';
import { test } from 'node:test';
import { BatchWriter, SYNC_BYTES } from '../../../storage/disk/batch-writer.js';

const PART_BYTES = 64 << 10;

/** A file in memory whose `writev` takes at most so many bytes, and can be held up or fail. */
class FakeFile {
  readonly written: Buffer[] = [];
  unsynced = 0;
  mostUnsynced = 0;
  calls = 0;
  gate: Promise<void> = Promise.resolve();
  failure: Error | null = null;

  constructor(private readonly takenAtOnce = Number.POSITIVE_INFINITY) {}

  get handle(): FileHandle {
    return {
      writev: (parts: readonly Uint8Array[]) => this.take(Buffer.concat(parts)),
      write: (bytes: Uint8Array, from: number) => this.take(Buffer.from(bytes.subarray(from))),
      datasync: async () => {
        this.unsynced = 0;
      },
    } as unknown as FileHandle;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.written);
  }

  private async take(bytes: Buffer): Promise<{ bytesWritten: number }> {
    this.calls++;
    await this.gate;
    if (this.failure !== null) throw this.failure;
    const taken = bytes.subarray(0, this.takenAtOnce);
    this.written.push(taken);
    this.unsynced += taken.length;
    this.mostUnsynced = Math.max(this.mostUnsynced, this.unsynced);
    return { bytesWritten: taken.length };
  }
}

function part(at: number): Buffer {
  return Buffer.alloc(PART_BYTES + at, at);
}

async function writeParts(writer: BatchWriter, count: number): Promise<Buffer> {
  const parts = Array.from({ length: count }, (_, at) => part(at % 100));
  for (const bytes of parts) await writer.add(bytes);
  await writer.end();
  return Buffer.concat(parts);
}

test('parts are written in their order and in few calls, and the disk is never far behind', async () => {
  const file = new FakeFile();
  const expected = await writeParts(new BatchWriter(file.handle), 300);
  assert.ok(file.bytes.equals(expected));
  assert.ok(file.calls < 25, `${file.calls} calls`);
  assert.ok(file.mostUnsynced <= SYNC_BYTES + (2 << 20), `${file.mostUnsynced} bytes were not on disk`);
});

test('a file that takes a part of a batch gets the rest of it', async () => {
  const file = new FakeFile(100_003);
  const expected = await writeParts(new BatchWriter(file.handle), 40);
  assert.ok(file.bytes.equals(expected));
});

test('whoever brings bytes waits while the file does not take any', async () => {
  const file = new FakeFile();
  let open = (): void => {};
  file.gate = new Promise((resolve) => {
    open = resolve;
  });
  const writer = new BatchWriter(file.handle);
  let given = 0;
  const giving = (async () => {
    for (let at = 0; at < 100; at++) {
      given += PART_BYTES;
      await writer.add(Buffer.alloc(PART_BYTES));
    }
  })();
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(given <= BatchWriter.heldBytesMax, `${given} bytes were taken`);
  open();
  await giving;
  await writer.end();
  assert.equal(file.bytes.length, 100 * PART_BYTES);
});

test('a write that fails is told to whoever brings more bytes, or ends', async () => {
  const file = new FakeFile();
  file.failure = new Error('no space');
  await assert.rejects(writeParts(new BatchWriter(file.handle), 100), /no space/);
  const writer = new BatchWriter(file.handle);
  writer.add(Buffer.alloc(10));
  await assert.rejects(writer.end(), /no space/);
  await writer.settled();
});
