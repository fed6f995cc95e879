/**
 * Troupe within another program: `import { Troupe } from 'troupe'`. The operations of the REST API with the same bodies
 * and results, on the same files, without sockets.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DoorServices } from '../http/context/services.js';
import { callOperation } from '../http/embedded/in-process.js';
import { TroupeError } from '../protocols/errors.js';
import type { OperationName, ResultOf } from '../protocols/openapi/operations.js';
import { freeForStart } from '../storage/disk/disk-watch.js';
import { memoryGiver } from '../storage/memory/system-calls.js';
import { type Composition, compose } from './compose.js';
import { unavailableSettings } from './config/available.js';
import { readBackupPlans } from './config/backup-settings.js';
import { resolveSettings, SettingsError } from './config/resolve.js';
import type { NodeSettings } from './config/settings.js';
import { snapshotProblems } from './config/snapshot-settings.js';
import { nodeIdentity } from './identity.js';
import { lockStorage, type StorageLock } from './lock/storage-lock.js';
import { type LogOutput, moduleLog, parseLevels } from './log.js';
import { TroupeOperations } from './troupe-operations.js';
import type { ListenOptions, OpenDoors, OperationCall } from './troupe-types.js';
import { ownVersion } from './version.js';

export { TroupeError } from '../protocols/errors.js';
export type { Explanation } from '../protocols/model/explanation.js';
export type { BodyOf, OperationName, ResultOf } from '../protocols/openapi/operations.js';
export { SettingsError } from './config/resolve.js';
export { StorageInUse } from './lock/storage-lock.js';
export type {
  AnyPayload,
  CollectionSettings,
  Filter,
  ListenOptions,
  OpenDoors,
  Point,
  PointId,
  PointsOptions,
  QueryAnswer,
  ReadOptions,
  ScoredPoint,
  ScrollPage,
  StoredPoint,
  UpsertBody,
  Vectors,
  WriteOptions,
} from './troupe-types.js';

export interface TroupeOptions {
  /**
   * The storage folder; made when it is missing. A server and another `Troupe` on it are kept out. `:memory:` is a new folder among the
   * system's temporary files, which goes with `close`, or at the end of the process; a process that is killed leaves it.
   */
  readonly path: string;
  /** Settings as in a configuration file: `{ storage: { performance: { max_search_threads: 2 } } }`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Which log lines `logLine` gets, `WARN` by default. */
  readonly logLevel?: string;
  /** Takes log lines with their line ends. Default: standard error. */
  readonly logLine?: (line: string) => void;
}

const MEMORY = ':memory:';

/** Temporary folders that are in use. */
const temporary = new Set<string>();
let isWatching = false;

/** One open storage folder. Every method rejects with a `TroupeError` where the REST API answers with an error. */
export class Troupe extends TroupeOperations {
  /** Resolves when every collection is open. Errors: StorageInUse, SettingsError, TroupeError `storage`. */
  static async open(options: TroupeOptions): Promise<Troupe> {
    const isTemporary = options.path === MEMORY;
    const path = isTemporary ? temporaryFolder() : options.path;
    const removeFolder = isTemporary ? () => removeTemporary(path) : () => {};
    try {
      return await Troupe.#openFolder({ ...options, path }, removeFolder);
    } catch (error) {
      removeFolder();
      throw error;
    }
  }

  static async #openFolder(options: TroupeOptions, removeFolder: () => void): Promise<Troupe> {
    const { settings, warnings } = resolveSettings([
      { kind: 'tree', name: 'settings', tree: options.settings },
      { kind: 'tree', name: 'path', tree: { storage: { storage_path: options.path } } },
    ]);
    const levels = parseLevels(options.logLevel ?? 'WARN');
    const problems = [
      ...unavailableSettings(settings),
      ...snapshotProblems(settings),
      ...readBackupPlans(settings).problems,
      ...(settings.cluster.enabled
        ? ['cluster.enabled: a storage folder within another program is a node of its own; run the server']
        : []),
      ...(settings.audit.enabled
        ? ['audit.enabled: a storage folder within another program has no clients to record; run the server']
        : []),
      ...(settings.otlp.endpoint === null
        ? []
        : ['otlp.endpoint: a storage folder within another program has no clients to trace; run the server']),
      ...(levels === undefined ? ['logLevel: not a level'] : []),
    ];
    if (levels === undefined || problems.length > 0) throw new SettingsError(problems);
    const write = options.logLine ?? ((line: string) => process.stderr.write(line));
    const output: LogOutput = { format: 'text', filter: levels, write };
    const logOf = (module: string) => moduleLog(module, [output], Date.now);
    for (const warning of warnings) logOf('main').warn(warning);
    let lost = (): void => {};
    freeForStart(settings.storage.storage_path, settings.storage.disk_reserve_mb);
    const lock = await lockStorage(settings.storage.storage_path, 0, () => lost());
    try {
      const identity = nodeIdentity(ownVersion(), Date.now());
      const composition = await compose(settings, null, identity, logOf, () => {});
      composition.memory.giveBack = memoryGiver();
      const troupe = new Troupe(composition, settings, lock, removeFolder);
      // Its threads end, and calls are refused from now on.
      lost = () => void troupe.close().catch(() => {});
      await Promise.all([composition.node.whenReady(), composition.started]).catch(async (error: unknown) => {
        await troupe.close();
        throw error;
      });
      return troupe;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  readonly #services: DoorServices;
  readonly #settings: NodeSettings;
  readonly #end: () => Promise<void>;
  readonly #doors = new Set<OpenDoors>();
  #closing: Promise<void> | null = null;

  private constructor({ end, node, pool, services }: Composition, settings: NodeSettings, lock: StorageLock, removeFolder: () => void) {
    super();
    this.#services = services;
    this.#settings = settings;
    this.#end = async () => {
      services.disk.stop();
      try {
        await Promise.all([...this.#doors].map((doors) => doors.close()));
        await node.close();
      } finally {
        await pool
          .close()
          .then(end)
          .finally(() => lock.release());
        removeFolder();
      }
    };
  }

  /** Ends all threads; writes that were begun are done. The folder is free when it resolves. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  /** For `await using troupe = await Troupe.open(…)`: closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Opens REST, and gRPC if asked for, for other programs and browsers; `close` closes them, too. Keys, limits and the dashboard are those of
   * `settings.service`; connections are plain. Errors: the system's, where an address cannot be taken.
   */
  async listen(options: ListenOptions = {}): Promise<OpenDoors> {
    if (this.#closing !== null) throw closed();
    const { openDoors } = await import('./troupe-doors.js');
    const doors = await openDoors(this.#services, this.#settings, options);
    const open: OpenDoors = {
      ...doors,
      close: async () => {
        if (this.#doors.delete(open)) await doors.close();
      },
    };
    this.#doors.add(open);
    return open;
  }

  protected override async carryOut<Name extends OperationName>(name: Name, call: OperationCall<Name>): Promise<ResultOf<Name>> {
    const caller: { readonly stack?: string } = {};
    // Where the program called: the error is made elsewhere, when an answer comes back from another thread.
    Error.captureStackTrace(caller, this.carryOut);
    try {
      if (this.#closing !== null) throw closed();
      return await callOperation(this.#services, name, call);
    } catch (error) {
      if (error instanceof Error) error.stack = `${error.stack}\n${(caller.stack ?? '').split('\n').slice(1).join('\n')}`;
      throw error;
    }
  }
}

function closed(): TroupeError {
  return new TroupeError('unavailable', 'the storage folder was closed');
}

/** A new folder, removed at the end of the process at the latest. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-memory-'));
  temporary.add(folder);
  if (!isWatching) process.once('exit', () => [...temporary].forEach(removeTemporary));
  isWatching = true;
  return folder;
}

function removeTemporary(folder: string): void {
  temporary.delete(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
