/** Whether threads of this process can listen on one port. Elsewhere the main thread takes all connections. */
export function canSharePort(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return process.platform === 'linux' && (major > 22 || (major === 22 && minor >= 12)) && !(major === 23 && minor === 0);
}
