/** Server reflection: tells clients such as grpcurl which services and messages there are. */

import type { Server } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { descriptorSet } from '../../protocols/grpc/schema.js';
import { BYTES, WireReader } from '../../protocols/grpc/wire-reader.js';

const FILE_TAG = (1 << 3) | BYTES;

/** Adds the reflection service, in both of its versions. */
export function addReflection(server: Server): void {
  const fileDescriptorProtos = descriptorFiles(descriptorSet());
  // The package looks at nothing but the descriptors of its entries.
  const entry = { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos };
  new ReflectionService({ files: entry } as unknown as ConstructorParameters<typeof ReflectionService>[0]).addToServer(server);
}

/** The files of a FileDescriptorSet, which is a message of nothing but them. */
function descriptorFiles(set: Uint8Array): Buffer[] {
  const files: Buffer[] = [];
  const reader = new WireReader(set);
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== FILE_TAG) throw new Error('the descriptors of the services are damaged');
    const to = reader.length();
    files.push(Buffer.from(set.subarray(reader.at, to)));
    reader.at = to;
  }
  return files;
}
