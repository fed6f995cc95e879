/**
 * Modules of Node.js that are loaded with their first use. Each costs a thread some milliseconds at its start and up to a megabyte, and few
 * threads ever need them.
 */

export function crypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto');
}

export function dns(): typeof import('node:dns/promises') {
  return process.getBuiltinModule('node:dns/promises');
}

export function v8(): typeof import('node:v8') {
  return process.getBuiltinModule('node:v8');
}

export function zlib(): typeof import('node:zlib') {
  return process.getBuiltinModule('node:zlib');
}

export function http(): typeof import('node:http') {
  return process.getBuiltinModule('node:http');
}

export function childProcess(): typeof import('node:child_process') {
  return process.getBuiltinModule('node:child_process');
}

export function tls(): typeof import('node:tls') {
  return process.getBuiltinModule('node:tls');
}

export function https(): typeof import('node:https') {
  return process.getBuiltinModule('node:https');
}
