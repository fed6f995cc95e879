/** `app` of `GET /telemetry`: what this process is, how it is set up, and what it runs on. Source: contract, `AppBuildTelemetry`. */

import { existsSync, lstatSync, readdirSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { readSystemFile } from '../../storage/memory/system-file.js';
import type { AuditSettings } from '../audit/audit-log.js';
import { auditFiles } from '../audit/plan-files.js';
import { API_VERSION, type DoorServices } from '../context/services.js';

type Json = Record<string, unknown>;

/** Instructions that decide how fast vectors are compared; a processor has a hundred others. */
const CPU_FLAGS: ReadonlySet<string> = new Set([
  ...['sse', 'sse2', 'ssse3', 'sse4_1', 'sse4_2', 'avx', 'avx2', 'fma', 'f16c', 'popcnt', 'avx512f', 'avx512bw', 'avx512vl', 'avx512_vnni'],
  ...['asimd', 'asimddp', 'asimdhp', 'fp', 'sve'],
]);

/** detailed: from `details_level` 1 on. anonymize: folders are left out. */
export function appReport(
  services: DoorServices,
  { anonymize, detailed }: { readonly anonymize: boolean; readonly detailed: boolean },
): Json {
  const { access, audit, disk, identity, recoveryMode, slow } = services;
  const app: Json = {
    name: 'troupe',
    version: API_VERSION,
    troupe_version: identity.version,
    startup: new Date(identity.startedMs).toISOString(),
  };
  if (!detailed) return app;
  const { totalBytes } = disk.report();
  return {
    ...app,
    features: {
      debug: false,
      service_debug_feature: false,
      recovery_mode: recoveryMode !== null,
      gpu: false,
      rocksdb: false,
      staging: false,
    },
    // Graphs are built anew from all rows of a segment; rows that are not built yet have no codes; each vector has a file for each segment.
    runtime_features: {
      all: false,
      incremental_hnsw_building: false,
      appendable_quantization: false,
      single_file_mmap_vector_storage: true,
    },
    // The largest part of deleted rows with which a graph is mended instead of built: none is.
    hnsw_global_config: { healing_threshold: 0 },
    // Files are mapped, and the kernel chooses which pages stay.
    low_memory_mode: 'disabled',
    jwt_rbac: access?.callers.settings.tokens ?? false,
    hide_jwt_dashboard: false,
    ...(audit === null ? {} : { audit: auditReport(audit.settings, anonymize) }),
    // Names and plans are of users.
    slow_requests: anonymize ? { ...slow.report(), last: [] } : slow.report(),
    system: {
      distribution: os.type(),
      distribution_version: os.release(),
      ...machine(),
      cores: os.availableParallelism(),
      ram_size: Math.floor(os.totalmem() / 1024),
      ...(totalBytes === null ? {} : { disk_size: Math.floor(totalBytes / 1024) }),
      cpu_endian: os.endianness() === 'LE' ? 'little' : 'big',
    },
  };
}

function auditReport({ filesMax, folder, rotation, trustForwarded }: AuditSettings, anonymize: boolean): Json {
  return {
    dir: anonymize ? 'hidden' : folder,
    rotation,
    max_log_files: filesMax,
    trust_forwarded_headers: trustForwarded,
    // Every operation is recorded.
    log_api: true,
    dir_size_bytes: auditBytes(folder),
  };
}

/** Bytes of the files of the audit log, of which there are few; undefined where the folder cannot be read. */
function auditBytes(folder: string): number | undefined {
  try {
    const sizes = auditFiles(readdirSync(folder)).map((name) => lstatSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0);
    return sizes.reduce((sum, size) => sum + size, 0);
  } catch {
    return undefined;
  }
}

let known: { readonly is_docker: boolean; readonly cpu_flags: string } | null = null;

/** What does not change while the process runs: it is read once. */
function machine(): { readonly is_docker: boolean; readonly cpu_flags: string } {
  if (known === null) {
    const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(readSystemFile('/proc/cpuinfo'))?.[1] ?? '';
    const shown = flags.split(' ').filter((flag) => CPU_FLAGS.has(flag));
    known = { is_docker: existsSync('/.dockerenv') || existsSync('/run/.containerenv'), cpu_flags: shown.join(',') };
  }
  return known;
}
