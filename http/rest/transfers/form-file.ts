/**
 * Takes the file of a form (`multipart/form-data`) from the body of a request: the file's bytes go to the disk as they come, at the pace of the
 * disk, and whatever else the form has is dropped.
 */

import { open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { UploadFile } from '../../../actors/snapshots/snapshot-api.js';
import { BatchWriter } from '../../../storage/disk/batch-writer.js';

/** A body that is not the form that was asked for. Clients get the text as it is. */
export class FormProblem extends Error {
  constructor(
    readonly status: 400 | 415,
    readonly text: string,
  ) {
    super(text);
  }
}

/** Parts of the form, and bytes of it that do not belong to the file. */
const PARTS_MAX = 16;
const OTHER_BYTES_MAX = 1 << 20;
const HEADER_BYTES_MAX = 16_384;

/** Errors: `FormProblem` for another type of body. Source of the text: contract, scenario `snapshots-collection`. */
export function checkFormType(contentType: string | undefined): string {
  if (contentType !== undefined && /^multipart\/form-data[ \t]*(;|$)/i.test(contentType)) return contentType;
  throw new FormProblem(415, 'ContentTypeIncompatible');
}

/**
 * Writes the part `name` to the file. The request is not destroyed when this rejects, so that it can be answered. Errors: `FormProblem`; those
 * of `file`; those of the disk; any, when the client is gone.
 */
export function takeFormFile(request: IncomingMessage, contentType: string, name: string, file: UploadFile): Promise<void> {
  const announced = Number(request.headers['content-length'] ?? 0);
  file.requireRoom(announced);
  const form = openForm(contentType, name);
  return new Promise((resolve, reject) => {
    let part: Readable | null = null;
    let saved: Promise<void> | null = null;
    const bytes = { received: 0, saved: 0 };
    let isOver = false;

    const end = (error: Error | null): void => {
      if (isOver) return;
      isOver = true;
      request.unpipe(form);
      request.off('data', count).off('error', end).off('close', gone);
      part?.destroy();
      // What is being written must be closed before the file can be removed.
      const settle = (): void => (error === null ? resolve() : reject(error));
      if (saved === null) settle();
      else saved.then(settle, settle);
    };
    const gone = (): void => {
      if (!request.complete) end(new Error('the client has gone away'));
    };
    const count = (chunk: Buffer): void => {
      bytes.received += chunk.length;
      if (bytes.received - bytes.saved > OTHER_BYTES_MAX)
        end(new FormProblem(400, `the form has more than ${OTHER_BYTES_MAX} bytes beside its file \`${name}\``));
    };

    form.on('file', (_name, stream) => {
      part = stream;
      // An error that comes after the part was given up has no other listener.
      stream.on('error', () => {});
      saved = save(stream, file, (length) => {
        bytes.saved += length;
      });
      saved.catch(end);
    });
    form.on('filesLimit', () => end(new FormProblem(400, `Duplicate field: ${name}`)));
    form.on('partsLimit', () => end(new FormProblem(400, `the form has more than ${PARTS_MAX} parts`)));
    form.on('error', (error) => end(new FormProblem(400, `the form is broken: ${(error as Error).message}`)));
    form.on('finish', () => {
      if (saved === null) end(new FormProblem(400, `Required field is missing: ${name}`));
      else
        saved.then(
          () => end(null),
          () => {},
        );
    });
    request.on('data', count).on('error', end).on('close', gone);
    request.pipe(form);
  });
}

function openForm(contentType: string, name: string): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      isPartAFile: (fieldName) => fieldName === name,
      limits: { files: 1, parts: PARTS_MAX, fieldSize: 0, headerSize: HEADER_BYTES_MAX },
    });
  } catch {
    throw new FormProblem(400, 'the content type of the form has no boundary');
  }
}

/** written: told how much is about to be written. The file is closed when it ends. */
async function save(part: Readable, file: UploadFile, written: (length: number) => void): Promise<void> {
  const handle = await open(file.path, 'w', 0o600);
  const writer = new BatchWriter(handle);
  try {
    for await (const chunk of part as AsyncIterable<Buffer>) {
      file.requireRoom(chunk.length);
      written(chunk.length);
      const behind = writer.add(chunk);
      if (behind !== null) await behind;
    }
    await writer.end();
  } finally {
    await writer.settled();
    await handle.close();
  }
}
