/** What the doors work with: the node, its settings and the process around them. */

import type { NodeApi } from '../../actors/requests/node-api.js';
import type { Log } from '../../actors/runtime/ports.js';
import type { GrpcMethodName } from '../../protocols/grpc/method-names.js';
import type { CollectionDefaults } from '../../protocols/rest/collections.js';
import type { DiskWatch } from '../../storage/disk/disk-watch.js';
import type { MemoryWatch } from '../../storage/memory/watch.js';
import type { DoorAccess } from '../access/door-access.js';
import type { Advice } from '../advice/advice.js';
import type { AuditLog } from '../audit/audit-log.js';
import type { LiveHub } from '../live/hub.js';
import type { TraceLog } from '../otlp/trace-log.js';
import type { FilterCaches } from '../reports/filter-caches.js';
import type { CallLog } from './call-log.js';
import type { ClientGate } from './client-gate.js';
import type { Endpoint } from './endpoint.js';
import type { Reports } from './reports.js';
import type { RequestStats } from './request-stats.js';
import type { SlowRequests } from './slow-requests.js';
import type { UnknownFieldCounts } from './unknown-fields.js';

/** Who this process is. */
export interface Identity {
  /** Random per process, as a UUID. */
  readonly id: string;
  /** Random per process. */
  readonly peerId: number;
  /** Troupe's own version. */
  readonly version: string;
  /** The date when it started. */
  readonly startedMs: number;
}

export interface DoorServices {
  readonly node: NodeApi;
  /** Null: the node has no keys, and everybody may do everything. */
  readonly access: DoorAccess | null;
  readonly identity: Identity;
  readonly defaults: CollectionDefaults;
  /** Null for no bound. */
  readonly maxCollections: number | null;
  readonly metricsPrefix: string;
  /** `service.hardware_reporting`: answers about points say what they cost. */
  readonly hardwareReporting: boolean;
  readonly stats: RequestStats<Endpoint>;
  /** By method. */
  readonly grpcStats: RequestStats<GrpcMethodName>;
  /** Makes answers that grow with the number of collections. */
  readonly reports: Reports;
  /** Fields of requests that the API does not have. */
  readonly unknownFields: UnknownFieldCounts;
  readonly advice: Advice;
  /** What readers keep of filters. */
  readonly caches: FilterCaches;
  /** Clients that follow what changes. */
  readonly live: LiveHub;
  /** Requests that took long. */
  readonly slow: SlowRequests;
  /** Null: what clients do is not recorded. */
  readonly audit: AuditLog | null;
  /** Null: no traces are sent. */
  readonly traces: TraceLog | null;
  /** Both of them, for the doors of the main thread; null: there is neither. */
  readonly calls: CallLog | null;
  /** Which clients may connect; null: all. */
  readonly clients: ClientGate | null;
  /** What to tell on every page about a node that is open to others; null: it is not. */
  readonly exposure: string | null;
  readonly log: Log;
  /** The text of recovery mode; null: not in it. */
  readonly recoveryMode: string | null;
  readonly memory: Pick<MemoryWatch, 'ledger' | 'report'>;
  /** The disk of the storage folder. */
  readonly disk: Pick<DiskWatch, 'require' | 'report' | 'stop'>;
  /** What this node waits for before it should get requests; null: it is ready. */
  readonly notReady: () => string | null;
  /** Milliseconds, of a clock that is never set: deadlines go by it. */
  readonly nowMs: () => number;
  /** Milliseconds since the epoch, for dates that are shown. */
  readonly dateMs: () => number;
  /** Milliseconds of a clock that never goes back. */
  readonly monotonicMs: () => number;
}

/** The version of the API that clients check for compatibility. Source: contract, `GET /`. */
export const API_VERSION = '1.18.3';
