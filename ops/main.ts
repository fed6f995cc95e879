/** The server, as `launch.sh` starts it: from settings to a serving node, and from a signal to an orderly end. */

import { statSync } from 'node:fs';
import nodeModule from 'node:module';
import { getEnvironmentData } from 'node:worker_threads';
import { PeerPortError } from '../cluster/transport/port-error.js';
import { AccessLog } from '../http/audit/access-log.js';
import { allCallLogs } from '../http/context/call-log.js';
import type { PeerPorts } from '../http/context/peer-ports.js';
import type { DoorServices, Identity } from '../http/context/services.js';
import { canSharePort } from '../http/context/share-port.js';
import { GrpcBindError, type GrpcDoor, startGrpcDoor } from '../http/grpc/server.js';
import { OWN_PAGES } from '../http/rest/own-pages.js';
import { type RestDoor, startRestDoor } from '../http/rest/start.js';
import { TroupeError } from '../protocols/errors.js';
import { freeForStart } from '../storage/disk/disk-watch.js';
import { memoryGiver } from '../storage/memory/system-calls.js';
import type { EnginePool } from '../storage/pool/pool.js';
import { RestingHeap } from '../storage/threads/collect-garbage.js';
import { startBanner } from './banner.js';
import { type ClusterStart, type CommandLineOf, parseCommandLine } from './cli.js';
import { memberProblems, misplacedOptions, type OwnClusterOptions, openCluster } from './cluster-start.js';
import { compose, type FatalReason } from './compose.js';
import { unavailableSettings } from './config/available.js';
import { readBackupPlans } from './config/backup-settings.js';
import { clientProblems } from './config/client-settings.js';
import { loadSettings } from './config/load.js';
import { otlpSettings } from './config/otlp-settings.js';
import { type Resolved, SettingsError } from './config/resolve.js';
import type { NodeSettings } from './config/settings.js';
import { snapshotProblems } from './config/snapshot-settings.js';
import { endAtOnce, endDespiteThreads } from './end-process.js';
import { exposureNotice } from './exposure.js';
import { nodeIdentity } from './identity.js';
import { ownKey, securedProblems, wantsOwnKey } from './keys/own-key.js';
import { lockStorage, StorageInUse, type StorageLock } from './lock/storage-lock.js';
import { hasOwnLevel, type LogOutput, type ModuleLog, moduleLog } from './log.js';
import { isColoured, openOutputs } from './outputs.js';
import { describeRuntime } from './runtime.js';
import { tellAudit } from './tell-audit.js';
import { tellRefusals } from './tell-refusals.js';
import { tlsProblems } from './tls/certificates.js';
import { openTls, type TlsKeeper } from './tls/keeper.js';
import { ownVersion } from './version.js';

const EXIT_FAILED = 1;
const EXIT_WRONG_COMMAND_LINE = 2;
/** Another process has taken the storage folder over. */
const EXIT_FOLDER_LOST = 3;
/** A thread does not answer and cannot be ended. */
const EXIT_STUCK = 4;
/** How long running requests may take once the process is asked to end. */
const CLOSE_GRACE_MS = 30_000;
/** How long a start waits for the node before it to be gone. */
const LOCK_PATIENCE_MS = 5000;
/** From then on memory is given back: a start keeps compiled code and collects garbage after two and three seconds. */
const GIVE_BACK_AFTER_MS = 5000;
const MEBIBYTE = 1 << 20;

const startedMs = Date.now();
void main();

async function main(): Promise<void> {
  const version = ownVersion();
  const command = parseCommandLine(process.argv.slice(2), version, process.env);
  switch (command.kind) {
    case 'print':
      process.stdout.write(command.text);
      return;
    case 'refuse':
      process.stderr.write(`troupe: ${command.message}`);
      process.exitCode = EXIT_WRONG_COMMAND_LINE;
      return;
    case 'verify':
      await verify(command.path, command.unpack, command.configPath);
      return;
    case 'restore':
      await restoreAndEnd(command);
      return;
    case 'tool':
      process.exitCode = await (await import('./tools/run.js')).runTool(command.name, command.args);
      return;
    case 'serve':
      await serve(command, version);
      return;
    default:
      command satisfies never;
  }
}

/** Exit code 0: everything is sound. */
async function verify(given: string | null, unpack: boolean, configPath: string | undefined): Promise<void> {
  const storage = () => loadSettings({ folder: process.cwd(), configPath, environment: process.env }).settings.storage;
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  try {
    const path = given ?? storage().storage_path;
    if (statSync(path, { throwIfNoEntry: false })?.isFile()) {
      const { describeArchive, temporaryFolder, verifyArchiveFile } = await import('./verify-archive.js');
      const { archive, problems } = await verifyArchiveFile(path, unpack ? temporaryFolder(storage().temp_path) : null, print);
      const end =
        archive === null ? `the snapshot ${path} cannot be read to its end` : `looked through ${describeArchive(archive)} in ${path}`;
      print(`${describeProblems(problems)}: ${end}`);
      process.exitCode = problems === 0 ? 0 : EXIT_FAILED;
      return;
    }
    const { verifyStorage } = await import('./verify.js');
    const { collections, points, problems, shards } = await verifyStorage(path, print);
    print(`${describeProblems(problems)}: looked through ${collections} collections, ${shards} shards, ${points} points in ${path}`);
    process.exitCode = problems === 0 ? 0 : EXIT_FAILED;
  } catch (error) {
    fail(error);
  }
}

/** Exit code 0: it is restored; of a dry run: it would be. */
async function restoreAndEnd({ configPath, dryRun, ...order }: CommandLineOf<'restore'>): Promise<void> {
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  try {
    const { settings } = loadSettings({ folder: process.cwd(), configPath, environment: process.env });
    const { describeRestore, restoreStopped } = await import('./restore.js');
    if (dryRun) process.exitCode = (await describeRestore(settings, order, print)) === 0 ? 0 : EXIT_FAILED;
    else await restoreStopped(settings, order, print);
  } catch (error) {
    fail(error instanceof TroupeError ? new Error(`cannot restore ${order.path}: ${error.detail}`) : error);
  }
}

function describeProblems(problems: number): string {
  return problems === 0 ? 'nothing is wrong' : `${problems} problem${problems === 1 ? '' : 's'}`;
}

async function serve({ cluster: start, configPath, restore, secured }: CommandLineOf<'serve'>, version: string): Promise<void> {
  let resolved: Resolved;
  let outputs: LogOutput[];
  let lock: StorageLock;
  let tls: TlsKeeper | null;
  let onLost = (error: unknown): void => fail(error, EXIT_FOLDER_LOST);
  try {
    resolved = loadSettings({ folder: process.cwd(), configPath, environment: process.env });
    if (secured) resolved = { ...resolved, settings: withService(resolved.settings, { secured }) };
    const problems = [
      ...unavailableSettings(resolved.settings),
      ...snapshotProblems(resolved.settings),
      ...tlsProblems(resolved.settings),
      ...memberProblems(resolved.settings),
      ...readBackupPlans(resolved.settings).problems,
      ...clientProblems(resolved.settings),
      ...securedProblems(resolved.settings),
      ...misplacedOptions(start, restore, resolved.settings),
    ];
    if (problems.length > 0) throw new SettingsError(problems);
    tls = openTls(resolved.settings, { dateMs: Date.now, monotonicMs: () => performance.now() });
    outputs = openOutputs(resolved.settings);
    freeForStart(resolved.settings.storage.storage_path, resolved.settings.storage.disk_reserve_mb);
    lock = await lockStorage(resolved.settings.storage.storage_path, LOCK_PATIENCE_MS, (error) => onLost(error));
  } catch (error) {
    fail(error);
    return;
  }
  process.on('exit', () => lock.release());
  const logOf = (module: string) => moduleLog(module, outputs, Date.now);
  const log = logOf('main');
  const { level, message, runtime } = describeRuntime(process.env.TROUPE_STARTED, process.version);
  log[level](message, { runtime });
  for (const warning of [...resolved.warnings, ...(tls?.warnings ?? [])]) log.warn(warning);
  watchFailures(log);
  onLost = (error) => {
    log.error('another process has taken over the storage folder, this one ends', { error: stackOf(error) });
    endAtOnce(EXIT_FOLDER_LOST);
  };
  try {
    const settings = wantsOwnKey(resolved.settings) ? secure(resolved.settings, log) : resolved.settings;
    if (restore !== null) await (await import('./restore-before-start.js')).restoreBeforeStart(settings, restore, log);
    const accessLog = hasOwnLevel(outputs, 'access') ? logOf('access') : null;
    await run(settings, tls, start, nodeIdentity(version, startedMs), logOf, accessLog);
  } catch (error) {
    fail(describeStartFailure(error, resolved.settings));
  }
}

/** The settings with the key that the storage folder has. A new key is for whoever starts the node, and for no log. */
function secure(settings: NodeSettings, log: ModuleLog): NodeSettings {
  const { isNew, key, path } = ownKey(settings.storage.storage_path);
  if (isNew) process.stderr.write(`troupe: the API key of this node, which is shown only once: ${key}\n`);
  log.info(isNew ? 'a key was made: clients need it from now on' : 'clients need the key of the storage folder', { file: path });
  return withService(settings, { api_key: key });
}

function withService(settings: NodeSettings, changed: Partial<NodeSettings['service']>): NodeSettings {
  return { ...settings, service: { ...settings.service, ...changed } };
}

/** Starts everything; resolves when requests are taken. What was started before a failure is not stopped: the process ends. */
async function run(
  settings: NodeSettings,
  tls: TlsKeeper | null,
  start: ClusterStart,
  identity: Identity,
  logOf: (module: string) => ModuleLog,
  accessLog: ModuleLog | null,
): Promise<void> {
  const log = logOf('main');
  const { service, storage } = settings;
  const cluster = await openCluster(settings, start, tls?.material.peers ?? null, identity.version, log, (why) =>
    fail(new Error(`this node cannot join its cluster: ${why}`)),
  );
  const logRequests = logOf('http').enabled('DEBUG');
  const doorsInReaders = canSharePort() && !service.hardware_reporting && !logRequests && accessLog === null;
  const { end, memory, node, pool, services, started } = await compose(settings, cluster, identity, logOf, endOn, doorsInReaders);
  if (cluster !== null) pool.watch(cluster.store);
  // From here on a signal ends in order what has been started.
  const open: Door[] = [];
  const peerPorts = cluster !== null && doorsInReaders ? await openPeerPorts(pool, service.host, cluster) : null;
  const closeAll = async (): Promise<void> => {
    services.disk.stop();
    tls?.stop();
    await Promise.all([...open.map((door) => door.close(CLOSE_GRACE_MS)), peerPorts?.close()]);
    await services.calls?.close();
    pool.prepareExit();
    await node.close();
    await cluster?.transport.close();
    // While the pool looks whether its thread is alive.
    await cluster?.store.close();
    await pool.close();
    end();
  };
  endOnSignal(closeAll, log);
  let areOpen = false;
  const notReady = (): string | null => (areOpen ? services.notReady() : 'servers are being opened');
  const access = accessLog === null ? null : new AccessLog(accessLog, settings.audit.trust_forwarded_headers, services.monotonicMs);
  const servers = openServers(
    { ...services, calls: allCallLogs([services.calls, access]), notReady },
    service,
    tls,
    doorsInReaders ? pool : null,
    logRequests,
    (door) => open.push(door),
  );
  // They wait for the first reader.
  const [[rest, grpc]] = await Promise.all([servers, started]);
  areOpen = true;
  tls?.watch(log, ({ door, peers }) => {
    if (peers !== null) cluster?.transport.renew(peers);
    if (peers !== null) peerPorts?.renew(peers);
    if (door !== null) for (const server of open) server.renew(door);
  });
  const host = hostInUrl(service.host);
  const doors = {
    rest: `${service.enable_tls ? 'https' : 'http'}://${host}:${rest.port}`,
    ...(grpc === null ? {} : { grpc: `${host}:${grpc.port}` }),
    ...(cluster === null ? {} : { peers: `${host}:${cluster.port}` }),
  };
  const facts = { version: identity.version, storage: storage.storage_path, readers: pool.readers, writers: pool.writers };
  log.info('Troupe is listening', { ...doors, ...facts });
  if (process.stdout.isTTY)
    process.stdout.write(startBanner(settings, { ...doors, version: identity.version }, isColoured(process.stdout, process.env)));
  if (services.clients !== null) tellRefusals(services.clients, logOf('http'));
  if (services.audit !== null) tellAudit(services.audit, logOf('http'));
  await startMetricsPush(settings, services, logOf('http'));
  if (services.exposure !== null) tellExposure(services.exposure, log);
  // `compose` tells of a failure.
  node.whenReady().then(
    () => {
      tellThreadsReady();
      keepCompiledCode();
      new RestingHeap(() => node.listCollections().length > 0).begin();
      setTimeout(() => {
        memory.giveBack = memoryGiver();
      }, GIVE_BACK_AFTER_MS).unref();
    },
    () => {},
  );
}

/** Peers ask readers for portions of reads. Loaded only in a cluster. */
async function openPeerPorts(pool: EnginePool, host: string, { transport }: OwnClusterOptions): Promise<PeerPorts> {
  const { PeerPorts } = await import('../http/context/peer-ports.js');
  const ports = new PeerPorts(pool, host, transport);
  ports.open();
  return ports;
}

/** Loads what sends metrics only where they are sent. */
async function startMetricsPush(settings: NodeSettings, services: DoorServices, log: ModuleLog): Promise<void> {
  const otlp = otlpSettings(settings, services.identity.version);
  if (otlp === null || otlp.metricsPeriodMs === 0) return;
  const { address, metricsPeriodMs: periodMs, resource } = otlp;
  const { pushMetrics } = await import('../http/otlp/push-metrics.js');
  pushMetrics(services, {
    address,
    resource,
    periodMs,
    tell: (problem) => {
      if (problem === null) log.info('the collector takes metrics again', { endpoint: address.endpoint });
      else
        log.warn('the collector does not take metrics; the next ones have what these would have told', {
          endpoint: address.endpoint,
          problem,
        });
    },
  });
}

/** In the log for programs that watch it, and in front of whoever sits at the terminal. */
function tellExposure(exposure: string, log: ModuleLog): void {
  log.warn(`${exposure} Set service.api_key, start with --secured, or bind service.host to 127.0.0.1`);
  if (process.stderr.isTTY) process.stderr.write(exposureNotice(exposure));
}

type Door = RestDoor | GrpcDoor;

/** Opens the servers for clients side by side. onOpen: told of each at once, also if another one cannot be opened. */
async function openServers(
  services: DoorServices,
  settings: NodeSettings['service'],
  keeper: TlsKeeper | null,
  readers: EnginePool | null,
  logRequests: boolean,
  onOpen: (door: Door) => void,
): Promise<readonly [RestDoor, GrpcDoor | null]> {
  const { enable_cors: cors, enable_static_content: hasPages, grpc_port: grpcPort, host, http_port: port } = settings;
  const packFromBytes = settings.compression_min_bytes;
  const pages = hasPages ? (settings.static_content_dir ?? OWN_PAGES) : null;
  const tls = keeper?.material.door ?? null;
  const bytesMax = settings.max_request_size_mb * MEBIBYTE;
  const opened = <Kind extends Door>(door: Kind): Kind => {
    onOpen(door);
    return door;
  };
  const rest = startRestDoor(services, { host, port, maxBodyBytes: bytesMax, tls, cors, packFromBytes, pages, logRequests, readers }).then(
    opened,
  );
  const grpc =
    grpcPort === null ? null : startGrpcDoor(services, { host, port: grpcPort, maxMessageBytes: bytesMax, tls, logRequests, readers });
  return Promise.all([rest, grpc === null ? null : grpc.then(opened)]);
}

function endOn(reason: FatalReason): void {
  if (reason === 'stuck') endDespiteThreads(EXIT_STUCK);
  else endAtOnce(EXIT_FAILED);
}

/** From now on threads may keep the code that they have compiled (`kept-code.cjs`, which is part of the bundle alone). */
function tellThreadsReady(): void {
  const ready = getEnvironmentData('troupe-ready');
  if (ready instanceof Int32Array) Atomics.store(ready, 0, 1);
}

/** For the next start. Node.js does it at an orderly end, and a killed process has none. Node.js 20 has no such cache. */
function keepCompiledCode(): void {
  (nodeModule as { readonly flushCompileCache?: () => void }).flushCompileCache?.();
}

/** One Ctrl-C reaches the process twice: from the terminal, and from npm. */
const SAME_WISH_MS = 500;

/** SIGTERM and SIGINT: running requests finish, collections close, exit code 0. A later signal ends at once. */
function endOnSignal(closeAll: () => Promise<void>, log: ModuleLog): void {
  let endingSinceMs: number | null = null;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (endingSinceMs !== null) {
      if (performance.now() - endingSinceMs < SAME_WISH_MS) return;
      log.warn('ended at once', { signal });
      endAtOnce(EXIT_FAILED);
    }
    endingSinceMs = performance.now();
    log.info('ending', { signal });
    try {
      await closeAll();
      log.info('ended');
      process.exit(0);
    } catch (error) {
      log.error('the node did not end in order', { error });
      endAtOnce(EXIT_FAILED);
    }
  };
  process.on('SIGTERM', (signal) => void end(signal));
  process.on('SIGINT', (signal) => void end(signal));
}

/** A promise nobody waited for concerns one request; an exception outside of all requests means a broken invariant. */
function watchFailures(log: ModuleLog): void {
  process.on('unhandledRejection', (reason) =>
    log.error('an asynchronous task failed, and no caller handled its error', { error: stackOf(reason) }),
  );
  process.on('uncaughtException', (error) => {
    log.error('an invariant broke, the process ends', { error: stackOf(error) });
    endAtOnce(EXIT_FAILED);
  });
}

function fail(error: unknown, code = EXIT_FAILED): void {
  const lines = error instanceof SettingsError ? error.problems : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) process.stderr.write(`troupe: ${line}\n`);
  process.exit(code);
}

/** The failure in words that say what to change. */
function describeStartFailure(error: unknown, settings: NodeSettings): unknown {
  const { host, http_port: httpPort, grpc_port: grpcPort } = settings.service;
  const [port, key] =
    error instanceof PeerPortError
      ? [settings.cluster.p2p.port, 'cluster.p2p.port']
      : error instanceof GrpcBindError
        ? [grpcPort, 'service.grpc_port']
        : [httpPort, 'service.http_port'];
  switch ((error as NodeJS.ErrnoException | undefined)?.code) {
    case 'EADDRINUSE':
      return new Error(`cannot listen on ${host}:${port}: another process uses this address (${key})`);
    case 'EACCES':
      return new Error(`no permission: ${(error as Error).message}`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Error(`cannot listen on ${host}:${port}: this machine has no such address (service.host)`);
    default:
      if (error instanceof StorageInUse || error instanceof SettingsError) return error;
      return new Error(`cannot start: ${error instanceof TroupeError ? error.detail : stackOf(error)}`);
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
