/** What the benchmark's processes say to each other: the conductor (`main.ts`), the load client and the baseline. */

// ------------------------------------------------------------------ load client

/** Requests ready to be sent, see `writeRequests`. Sent over keep-alive connections, one under way on each. */
export interface LoadJob {
  readonly kind: 'load';
  /** Of the nodes that are asked: connections go to one after the other. */
  readonly ports: readonly number[];
  /** What the requests of the file are: HTTP/1.1 as it goes over the wire, or calls that `grpcRequest` made. */
  readonly protocol: 'rest' | 'grpc';
  readonly requestsFile: string;
  readonly connections: number;
  /** Ends after this many requests; Infinity: at `stop`, or after `seconds`. */
  readonly requests: number;
  /** Ends after this time, but not before `requestsMin` requests; Infinity: no limit. */
  readonly seconds: number;
  readonly requestsMin: number;
  /** Whether the first body for each request comes back, for counting recall. */
  readonly keepBodies: boolean;
  readonly access?: LoadAccess;
  /** Requests of a second, of all connections together, as far as answers come in time; left out: as many as there are answers. */
  readonly perSecond?: number;
}

/** How connections of the load client are let in. */
export interface LoadAccess {
  /** The certificate of an authority as PEM: connections have TLS, and trust it alone. */
  readonly ca?: string;
  /** Further fields of each call over gRPC, name and value in turn. */
  readonly metadata?: readonly string[];
}

export type ToLoad = LoadJob | { readonly kind: 'stop' };

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Answers that were not 200, and the text of the first. */
  readonly errors: number;
  readonly firstError: string;
  /** Milliseconds. */
  readonly errorsP99: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** JSON body per request of the file, where kept; none over gRPC. */
  readonly bodies: readonly (string | undefined)[];
}

// ------------------------------------------------------------------ baseline

/** Vectors as raw float32 files, for work that needs no server: ground truth and the in-process index. */
export interface BaselineData {
  readonly vectorsFile: string;
  readonly queriesFile: string;
  readonly dim: number;
  readonly metric: 'l2sq' | 'ip';
  readonly threads: number;
}

export type ToBaseline =
  | {
      readonly kind: 'truth';
      readonly data: BaselineData /** Rows to search in; null: all. */;
      readonly rows: Uint32Array | null;
      readonly k: number;
    }
  | {
      readonly kind: 'build';
      readonly data: BaselineData;
      readonly connectivity: number;
      readonly expansionAdd: number;
      readonly indexFile: string;
    }
  | {
      readonly kind: 'search';
      readonly data: BaselineData;
      readonly connectivity: number;
      readonly indexFile: string;
      readonly ef: number;
      readonly k: number;
      readonly seconds: number;
    };

/** Exact nearest rows: [queries × k], best first; k is smaller when fewer rows are searched. */
export interface Truth {
  readonly k: number;
  readonly rows: Uint32Array;
}

export interface BaselineBuild {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export interface BaselineSearch {
  readonly ef: number;
  readonly cpuMsPerQuery: number;
  readonly queriesPerSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** [queries × k]. */
  readonly rows: Uint32Array;
}
