/** Requests prepared in a file, so that sending them costs the load client next to nothing. */

import { closeSync, openSync, writeSync } from 'node:fs';
import { framed } from './protobuf.js';

/** A complete HTTP request with a JSON body. */
export function jsonRequest(method: string, path: string, body: string): Buffer {
  const bytes = Buffer.from(body, 'utf8');
  const head = `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

/** A gRPC call: the path of its method, a zero byte, the framed message. */
export function grpcRequest(method: string, message: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/qdrant.Points/${method}\0`, 'latin1'), framed(message)]);
}

/** Writes requests one after the other, each after its length (u32 little endian). */
export function writeRequests(file: string, requests: Iterable<Buffer>): void {
  const handle = openSync(file, 'w');
  const length = Buffer.alloc(4);
  for (const request of requests) {
    length.writeUInt32LE(request.length);
    writeSync(handle, length);
    writeSync(handle, request);
  }
  closeSync(handle);
}

/** The requests of a file that `writeRequests` made; they share its memory. */
export function readRequests(file: Buffer): Buffer[] {
  const requests: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const length = file.readUInt32LE(at);
    requests.push(file.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return requests;
}
