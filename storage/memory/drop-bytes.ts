/** Memory of bytes that nobody will use again. */

type Transferable = ArrayBuffer & { transfer?: (byteLength: number) => ArrayBuffer };

/**
 * Gives the memory of bytes that have a buffer of their own back at once; whoever uses them afterwards finds them empty. Left to V8, a buffer that has
 * survived two collections of young objects stays until the whole heap is marked, and each 64 MB of such buffers make V8 mark it. Node.js 20 cannot give
 * them back: there they are left to V8.
 */
export function dropBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) (buffer as Transferable).transfer?.(0);
}
