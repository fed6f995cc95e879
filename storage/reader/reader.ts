/**
 * A reader: answers reads one after the other, each on a snapshot of its replicas, and splits writes by shard.
 *
 * A read may meet a commit whose set of segments is still on its way here (the writer announces it before it commits):
 * such a read waits for it and is tried again with every set that comes.
 */

import { type ErrorFacts, errorFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { KeyedShard, PeerId, ShardId, ShardKeySelector } from '../../protocols/model/cluster.js';
import type { ExplainRequest } from '../../protocols/model/explanation.js';
import { foundUnknown } from '../../protocols/model/unknown-fields.js';
import { type HardwareUsage, noUsage } from '../../protocols/model/usage.js';
import { effortNsMaxOf, HEAVY_BODY_BYTES, HEAVY_NS } from '../../query/effort.js';
import { FilterCache } from '../../query/filter/cache.js';
import { measured } from '../disk/meter.js';
import type { ExplainPlace } from '../explain/explainer.js';
import { forgetPlans, seenPlans } from '../explain/seen-plans.js';
import { toldIn } from '../explain/told.js';
import { lackOf } from '../limits/tokens.js';
import { HeldMemory, HeldValues } from '../memory/held-memory.js';
import { Ledger } from '../memory/shared-ledger.js';
import { decodedBytes } from '../requests/body-values.js';
import { memoryOf, splitRequest } from '../requests/split-request.js';
import { weightOf } from '../requests/weigh.js';
import { unkeyedShards } from '../sharding/keys.js';
import { steadyNowMs } from '../threads/clock.js';
import { GarbageCollector } from '../threads/collect-garbage.js';
import { Deadline, TooHeavy, timeLimitReached } from '../threads/deadline.js';
import { KnownReads } from '../threads/known-reads.js';
import type {
  FromReader,
  OwnCollection,
  OwnReadsNews,
  PeerCard,
  PortionResult,
  RawRequest,
  ReaderData,
  ReadOperation,
  ReplicaKey,
  ShardKeyMap,
  Sleeping,
  SpreadCollection,
  ToReader,
  WriteOperation,
} from '../threads/messages.js';
import { ReplicaUses } from '../threads/replica-uses.js';
import { ScratchTurns } from '../threads/scratch-turns.js';
import { SentSets } from '../threads/sent-sets.js';
import { CacheUses } from './cache-uses.js';
import { Company } from './company.js';
import { pointsElsewhere } from './cross-collection.js';
import { lackAsUnavailable } from './lack.js';
import { runRead } from './operations.js';
import { runPortion } from './portion/run.js';
import { paid, payWrite } from './rates.js';
import { SeenScans } from './seen-scans.js';
import { chosenSnapshots } from './snapshot/chosen-shards.js';
import {
  collectionOf,
  type KeyPlace,
  keyPlacesOf,
  type ReaderContext,
  ReplicaReader,
  type ReplicaSnapshot,
  shardOf,
} from './snapshot/snapshot-view.js';
import type { SpreadActs } from './spread-read.js';

/** Bitsets of filters this thread keeps, over all segments. */
const FILTER_CACHE_BYTES_MAX = 32 << 20;

type Read = Extract<ToReader, { kind: 'read' | 'portion' }>;

type Answer = Pick<Extract<FromReader, { kind: 'answer' }>, 'body' | 'positions'>;

const NO_BODY = new Uint8Array(0);

export type AloneAnswer = Uint8Array | 'heavy' | null;

/** A portion of a read, as a peer is asked for it. timeoutMs: the rest of the read's time. */
export interface PortionQuestion {
  readonly collection: string;
  readonly uid: number;
  readonly shards: readonly ShardId[];
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly shardMapVersion: number;
}

/** Asks peers from this thread. */
export interface AskPeers {
  /** From now on these are asked; what others are asked for is given up. thread: this reader's number, by which it has readers of a peer. */
  show(peers: ReadonlyMap<PeerId, PeerCard>, thread: number): void;
  /** Rejects in any doubt, and if there is no answer within `waitMs`. */
  ask(peer: PeerId, question: PortionQuestion, waitMs: number): Promise<PortionResult>;
}

/** A read that takes longer than was expected leaves a thread with connections, which hears nobody meanwhile, after so long. */
const DEAF_MS = 200;

/** After this long the main thread asks another peer. */
const SLOW_MS = 2000;

/** Opens the server of a reader's thread. */
export type OpenDoor = (reader: Reader, message: Extract<ToReader, { kind: 'door' }>) => void;

export class Reader {
  /** What this thread has of the node's memory. */
  readonly memory: Ledger;
  /** Of the read under way. */
  private readonly held: HeldMemory;
  private readonly values: HeldValues;
  private readonly replicas = new Map<ReplicaKey, ReplicaReader>();
  /** For explanations. */
  private readonly name: string;
  private readonly sent = new SentSets();
  private readonly asleep = new Map<ReplicaKey, Sleeping>();
  private readonly context: ReaderContext;
  private aliases: AliasMap = new Map();
  private shardKeys: ShardKeyMap = new Map();
  private readonly ownReads = new KnownReads();
  private newsOfReads: OwnReadsNews | null = null;
  /** Reads whose set of segments has not come. */
  private waiting: Read[] = [];
  private timer: NodeJS.Timeout | undefined;
  /** Loaded when there are peers to ask. */
  private gather: typeof import('./spread-read.js') | null = null;
  private loading: Promise<void> | null = null;
  private readonly company: Company;
  private readonly garbage = new GarbageCollector();
  private readonly scans = new SeenScans((scans) => this.post({ kind: 'scans', scans }));

  constructor(
    data: ReaderData,
    private readonly post: (message: FromReader, transfer?: ArrayBuffer[]) => void,
    /** Gets no more messages, so that the thread ends. */
    private readonly leave: () => void,
    private readonly openDoor: OpenDoor = (_reader, { port }) => port.close(),
    private readonly peers: AskPeers | null = null,
  ) {
    this.memory = new Ledger(data.memory);
    this.company = new Company(data.quickReads);
    this.name = `reader ${data.index}`;
    const uses = new CacheUses((uses) => this.post({ kind: 'cacheUses', uses }));
    const filters = new FilterCache(FILTER_CACHE_BYTES_MAX, (bytes) => this.memory.note('filters', bytes), uses);
    this.context = {
      index: data.index,
      turns: new ScratchTurns(data.scratchTurns, data.index),
      deadline: new Deadline(),
      filters,
      uses: new ReplicaUses(data.useTicks),
      scans: this.scans,
    };
    this.held = new HeldMemory(this.memory);
    this.values = new HeldValues(this.memory);
    this.context.deadline.memory = this.held;
  }

  /** giveWay: called every few microseconds of a read from here on. */
  set giveWay(giveWay: () => void) {
    this.context.deadline.giveWay = giveWay;
  }

  /** No collection is open in this thread. */
  get isEmpty(): boolean {
    return this.replicas.size === 0;
  }

  receive(message: ToReader): void {
    switch (message.kind) {
      case 'read':
        this.read(message);
        return;
      case 'portion':
        this.read(message);
        return;
      case 'split':
        this.split(message);
        return;
      case 'weigh':
        this.weigh(message);
        return;
      case 'attach':
        this.attach(message);
        return;
      case 'aliases':
        this.aliases = message.aliases;
        return;
      case 'shardKeys':
        this.shardKeys = message.shards;
        return;
      case 'ownReads':
        this.showOwnReads(message.news);
        return;
      case 'door':
        this.openDoor(this, message);
        return;
      case 'asleep':
        for (const sleeping of message.replicas) this.asleep.set(sleeping.key, sleeping);
        return;
      case 'forget':
        for (const key of message.keys) this.asleep.delete(key);
        return;
      case 'ping':
        this.post({ kind: 'pong' });
        return;
      case 'end':
        void this.end();
        return;
      case 'retire':
        this.replicas.get(message.key)?.retire(message.generation);
        if (message.freed > 0) this.garbage.soon(message.freed);
        this.post({ kind: 'retired', key: message.key, generation: message.generation });
        return;
      case 'detach':
        void this.detach(message);
        return;
      default:
        assertNever(message);
    }
  }

  /**
   * Why a read of a collection, by its name or alias, is refused whatever its body says (`rateLimited`); null: nobody here knows a reason. It is
   * asked before anything is made of the request, so that a refusal costs others little.
   */
  refusalOf(collection: string): ErrorFacts | null {
    const news = this.newsOfReads;
    const tokens = this.ownReads.collections.get(collection)?.limits?.tokens.read ?? null;
    return news === null || tokens === null || !isNewest(news) ? null : lackOf(tokens, steadyNowMs());
  }

  /**
   * Takes the tokens of a write for a collection, by its name or alias, and returns how many; or why it is refused (`rateLimited`). 0: the main
   * thread decides about it. request: asked for where its body has to be looked at, which is not changed.
   */
  payWrite(collection: string, operation: WriteOperation, request: () => RawRequest): number | ErrorFacts {
    const news = this.newsOfReads;
    const own = this.ownReads.collections.get(collection);
    const tokens = own?.limits?.tokens.write ?? null;
    if (news === null || own === undefined || tokens === null || !isNewest(news)) return 0;
    const [key] = own.replicas instanceof Map ? own.replicas.values() : own.replicas;
    const params = this.replicas.get(key)?.config.params;
    return params === undefined ? 0 : payWrite(tokens, { operation, request, params }, steadyNowMs());
  }

  /**
   * Answers a read of a client that `refusalOf` does not refuse, by the collection's name or alias, without asking the main thread; null: the
   * read has to be handed on to the main thread, which decides about it; 'heavy': also to the main thread, as a read that quick ones should
   * not wait for. The body is not changed. Errors: those of the operation; `timeout`.
   */
  readAlone(collection: string, operation: ReadOperation, request: RawRequest): AloneAnswer | Promise<AloneAnswer> {
    const news = this.newsOfReads;
    const own = this.ownReads.collections.get(collection);
    const isOfOne = request.consistency === undefined || request.consistency === 1;
    if (news === null || own === undefined || !isOfOne || request.usage !== undefined || !isNewest(news)) return null;
    // Nobody could tell the client while this thread decodes; the main thread answers in time.
    if ((request.body?.byteLength ?? 0) > HEAVY_BODY_BYTES) return 'heavy';
    if (own.limits === undefined) return this.readUnlimited(news, own, operation, request);
    const limited = { ...request, limits: own.limits.request };
    const giveBack = paid(own.limits.tokens.read, operation, limited);
    // The main thread takes tokens itself for what is handed on to it.
    const given = (answer: AloneAnswer): AloneAnswer => {
      if (answer === null || answer === 'heavy') giveBack();
      return answer;
    };
    const answer = this.readUnlimited(news, own, operation, limited);
    return answer instanceof Promise ? answer.then(given) : given(answer);
  }

  /** As `readAlone`, of a read that may be made. */
  private readUnlimited(
    news: OwnReadsNews,
    own: OwnCollection | SpreadCollection,
    operation: ReadOperation,
    request: RawRequest,
  ): AloneAnswer | Promise<AloneAnswer> {
    if (own.kind === 'spread') return this.readSpread(news, own, operation, request);
    try {
      const asked: RawRequest = own.served !== null ? { ...request, localOnly: true } : request;
      const answer = this.answerForClient(news, { kind: 'read', id: 0, operation, replicas: own.replicas, request: asked, mayLeave: true });
      // Collections, or what the cluster has agreed on, may have changed during the read.
      return answer === null || !isNewest(news) ? null : answer.body;
    } catch (error) {
      if (error instanceof TooHeavy) return 'heavy';
      if (error instanceof TroupeError && isAnswer(error) && isNewest(news)) throw error;
      return null;
    }
  }

  /** Answers a read of which other nodes are asked. Every doubt and error is the main thread's. */
  private readSpread(
    news: OwnReadsNews,
    own: SpreadCollection,
    operation: ReadOperation,
    request: RawRequest,
  ): Promise<AloneAnswer> | null {
    const { gather, peers } = this;
    if (gather === null || peers === null) return null;
    const { name, place, shardMapVersion } = own;
    const of = { collection: name, uid: place.uid, shardMapVersion };
    const waitMsMax = own.hasOthers ? SLOW_MS : Number.POSITIVE_INFINITY;
    const acts: SpreadActs = {
      own: (replicas, body, peer) => this.ownPortion(news, peer, replicas, body, request.deadlineMs),
      ask: ({ peer, shards }, body) => {
        const timeoutMs = Math.max(1, request.deadlineMs - steadyNowMs());
        return peers.ask(peer, { ...of, shards, body, timeoutMs }, Math.min(timeoutMs, waitMsMax));
      },
      isNewest: () => isNewest(news),
      random: Math.random,
    };
    try {
      const reading = gather.readSpread(own, operation, request, acts, this.name);
      return reading === null ? null : reading.catch((error: unknown) => (error instanceof TooHeavy ? 'heavy' : null));
    } catch {
      return null;
    }
  }

  /** Answers a peer's portion without asking the main thread; null: that one has to decide, also about what fails. */
  answerPeer({ body, collection, shardMapVersion, shards, timeoutMs, uid }: PortionQuestion): PortionResult | null {
    const news = this.newsOfReads;
    const served = this.ownReads.collections.get(collection)?.served ?? null;
    if (news === null || served === null || !isNewest(news)) return null;
    if (served.name !== collection || served.uid !== uid || served.shardMapVersion !== shardMapVersion) return null;
    const replicas = shards.flatMap((shard) => served.replicas.get(shard) ?? []);
    if (replicas.length < shards.length) return null;
    try {
      const answer = this.ownPortion(news, served.self, replicas, body, steadyNowMs() + timeoutMs);
      // A replica may have been replaced during the read, or points may have moved.
      return isNewest(news) ? answer : null;
    } catch {
      return null;
    }
  }

  private ownPortion(
    news: OwnReadsNews,
    peer: PeerId,
    replicas: readonly ReplicaKey[],
    body: Uint8Array,
    deadlineMs: number,
  ): PortionResult | null {
    const request = { path: {}, query: {}, body, deadlineMs, peer };
    const answer = this.answerForClient(news, { kind: 'portion', id: 0, replicas, request, mayLeave: true });
    return answer === null ? null : { body: answer.body, positions: answer.positions ?? [] };
  }

  /** As `answerOrLeave`, for a client that this thread has. */
  private answerForClient(news: OwnReadsNews, read: Read): Answer | null {
    const { index } = this.context;
    // The main thread replaces a reader that is stuck in it.
    news.deadlines[index] = read.request.deadlineMs;
    try {
      return this.answerOrLeave(read, null);
    } finally {
      news.deadlines[index] = 0;
    }
  }

  private showOwnReads(news: OwnReadsNews): void {
    this.ownReads.apply(news.change);
    this.newsOfReads = news;
    this.peers?.show(this.ownReads.peers, this.context.index);
    if (this.ownReads.peers.size === 0 || this.loading !== null) return;
    this.loading = import('./spread-read.js').then((loaded) => {
      this.gather = loaded;
    });
  }

  private attach(message: Extract<ToReader, { kind: 'attach' }>): void {
    const { opening, spec } = message;
    const set = this.sent.unpack({ key: spec.key, opening }, message.set);
    if (set === null) throw new Error(`replica ${spec.key}: a set names segments that it does not bring`);
    let replica = this.replicas.get(spec.key);
    this.asleep.delete(spec.key);
    if (replica === undefined) {
      replica = new ReplicaReader(spec, this.context);
      this.replicas.set(spec.key, replica);
    }
    replica.attach({ ...message, set });
    this.retryWaiting();
  }

  private async end(): Promise<void> {
    clearTimeout(this.timer);
    await Promise.allSettled([...this.replicas.values()].map((replica) => replica.close()));
    this.leave();
  }

  private async detach({ frees, key, sleeps }: Extract<ToReader, { kind: 'detach' }>): Promise<void> {
    const replica = this.replicas.get(key);
    this.replicas.delete(key);
    if (sleeps === null) this.asleep.delete(key);
    else this.asleep.set(key, sleeps);
    this.retryWaiting();
    try {
      await replica?.close();
    } finally {
      if (frees) this.garbage.soon();
      this.post({ kind: 'detached', key });
    }
  }

  private read(read: Read): void {
    try {
      const usage = read.request.usage === undefined ? null : noUsage();
      const answer = this.answerOrLeave(read, usage);
      if (answer === null) this.wait(read);
      else
        this.post(
          {
            kind: 'answer',
            id: read.id,
            ...answer,
            usage,
            ...toldIn(read.request.explain),
            ...foundUnknown(read.request.unknownFields),
          },
          [answer.body.buffer as ArrayBuffer],
        );
    } catch (error) {
      if (error instanceof Asleep) this.post({ kind: 'asleep', id: read.id, keys: error.keys });
      else if (error instanceof TooHeavy) this.post({ kind: 'tooHeavy', id: read.id });
      else this.fail(read.id, lackAsUnavailable(error));
    }
  }

  /** As `answer`. Throws `TooHeavy` where another thread should do this one: quick reads are about, or it takes long and clients are connected. */
  private answerOrLeave(read: Read, usage: HardwareUsage | null): Answer | null {
    const { deadline } = this.context;
    const startedMs = performance.now();
    deadline.effortNs = 0;
    deadline.payloads = 0;
    forgetPlans();
    if (read.mayLeave) deadline.leaveAtMs = steadyNowMs() + DEAF_MS;
    deadline.effortNsMax = effortNsMaxOf(read.mayLeave, this.company.quickNs(startedMs));
    try {
      deadline.claim({ kind: 'decode', bytes: read.request.body?.length ?? 0 });
      this.values.take(decodedBytes('read', read.request.body), 'busy');
      const answer = this.answer(read, usage);
      notePlan(read.request.explain, performance.now() - startedMs, deadline.payloads);
      return answer;
    } finally {
      deadline.effortNsMax = Number.POSITIVE_INFINITY;
      deadline.leaveAtMs = Number.POSITIVE_INFINITY;
      this.memory.left.add((read.request.body?.byteLength ?? 0) + this.held.release() + this.values.release());
      this.company.note(deadline.effortNs <= HEAVY_NS, startedMs, performance.now());
    }
  }

  private split({ id, job }: Extract<ToReader, { kind: 'split' }>): void {
    try {
      if (job.request.deadlineMs <= steadyNowMs()) throw timeLimitReached();
      const write = splitRequest(job);
      this.post({ kind: 'split', id, write }, memoryOf(write));
    } catch (error) {
      this.fail(id, error);
    } finally {
      this.memory.left.add(job.request.body?.byteLength ?? 0);
    }
  }

  private weigh({ id, job }: Extract<ToReader, { kind: 'weigh' }>): void {
    try {
      if (job.request.deadlineMs <= steadyNowMs()) throw timeLimitReached();
      this.post({ kind: 'weighed', id, weight: weightOf(job) });
    } catch (error) {
      this.fail(id, error);
    } finally {
      this.memory.left.add(job.request.body?.byteLength ?? 0);
    }
  }

  private fail(id: number, error: unknown): void {
    // A bug: the caller gets its message, standard error the place.
    if (!(error instanceof TroupeError))
      process.emitWarning(error instanceof Error ? (error.stack ?? error.message) : String(error), 'TroupeReader');
    this.post({ kind: 'error', id, error: errorFacts(error) });
  }

  /** The result bytes; null when a set of segments has not come yet. usage: what it costs is added to it. */
  private answer(read: Read, usage: HardwareUsage | null): Answer | null {
    const { deadline } = this.context;
    deadline.deadlineMs = read.request.deadlineMs;
    deadline.gone = read.request.heavy?.gone ?? null;
    if (deadline.expired()) throw timeLimitReached();
    this.scans.nextRead();
    const taken: ReplicaSnapshot[] = [];
    const ring = read.request.ring ?? null;
    const take = (keys: readonly ReplicaKey[]): ReplicaSnapshot[] => {
      const asleep = keys.filter((key) => this.asleep.has(key));
      if (asleep.length > 0) throw new Asleep(asleep);
      return keys.map((key) => {
        const replica = this.replicas.get(key);
        if (replica === undefined) throw new TroupeError('unavailable', `replica ${key} is not open here`, { retryAfterMs: 1000 });
        const snapshot = replica.snapshot(this.shardPlace(key), ring);
        if (snapshot === null) throw new SetOnItsWay();
        taken.push(snapshot);
        return snapshot;
      });
    };
    try {
      const snapshots = take(read.replicas);
      if (snapshots.length === 0)
        throw new TroupeError('unavailable', 'the collection has no open replica on this node: retry', { retryAfterMs: 1000 });
      const lookups = new Map<string, ReplicaSnapshot[]>();
      const lookup = (collection: string, shardKey?: ShardKeySelector): readonly ReplicaSnapshot[] => {
        if (read.request.localOnly === true) throw pointsElsewhere();
        const keys = this.keysOf(collection);
        const known = lookups.get(collection) ?? take(keys);
        lookups.set(collection, known);
        return chosenSnapshots(known, this.keyedShards(keys[0] as ReplicaKey), shardKey);
      };
      const keyed = this.keyedShards(read.replicas[0] as ReplicaKey);
      if (read.kind === 'portion') {
        const body = measured(usage, () => runPortion(read.request.body ?? NO_BODY, snapshots, Math.random, this.placeOf(read)));
        return { body, positions: snapshots.map(({ appliedOperation }) => appliedOperation) };
      }
      const context = { snapshots, keyed, lookup, place: this.placeOf(read), random: Math.random };
      return { body: measured(usage, () => runRead(read.operation, read.request, context)) };
    } catch (error) {
      if (error instanceof SetOnItsWay) return null;
      throw error;
    } finally {
      this.context.turns.giveBack();
      for (const snapshot of taken) {
        if (usage !== null) usage.cpu += scoredBytes(snapshot);
        snapshot.release();
      }
    }
  }

  private placeOf({ replicas, request }: Read): ExplainPlace {
    return { collection: collectionOf(replicas[0] as ReplicaKey), thread: this.name, peer: request.peer ?? null };
  }

  /**
   * Replicas of a collection, by its name or an alias. Errors: `notFound` when there is none here; `unavailable` when there are some
   * of its shards only: no answer lacks points.
   */
  private keysOf(collection: string): ReplicaKey[] {
    const own = this.keysNamed(collection);
    const alias = this.aliases.get(collection);
    const keys = own.length > 0 || alias === undefined ? own : this.keysNamed(alias);
    if (keys.length === 0) throw new TroupeError('notFound', `Collection \`${collection}\` doesn't exist!`);
    const count = this.keyedShards(keys[0] as ReplicaKey)?.length ?? this.shardsOf(keys[0] as ReplicaKey);
    if (keys.length < count) {
      const detail = `${keys.length} of the ${count} shards of collection ${collection} are open here`;
      throw new TroupeError('unavailable', detail, { retryAfterMs: 1000 });
    }
    return keys;
  }

  /** Number of shards of the replica's collection; 0 where they have keys, or nothing is known. */
  private shardsOf(key: ReplicaKey): number {
    const config = this.replicas.get(key)?.config;
    return config === undefined ? (this.asleep.get(key)?.shards ?? 0) : unkeyedShards(config);
  }

  /** Shards of the replica's collection, where they have keys. */
  private keyedShards(key: ReplicaKey): readonly KeyedShard[] | undefined {
    return this.shardKeys.get(collectionOf(key));
  }

  /** Undefined where shards have no keys, or none is known. */
  private shardPlace(key: ReplicaKey): KeyPlace | undefined {
    const keyed = this.keyedShards(key);
    return keyed && keyPlacesOf(keyed).get(shardOf(key));
  }

  private keysNamed(collection: string): ReplicaKey[] {
    return [...this.replicas.keys(), ...this.asleep.keys()].filter((key) => collectionOf(key) === collection);
  }

  private wait(read: Read): void {
    this.waiting.push(read);
    this.watchDeadlines();
  }

  private retryWaiting(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const read of waiting) this.read(read);
  }

  /** A waiting read whose time is over is tried once more, and so answered. */
  private watchDeadlines(): void {
    clearTimeout(this.timer);
    if (this.waiting.length === 0) return;
    const next = Math.min(...this.waiting.map((read) => read.request.deadlineMs));
    this.timer = setTimeout(() => this.retryWaiting(), Math.min(0x7fff_ffff, Math.max(1, next - steadyNowMs() + 1)));
  }
}

/** Says how a read was carried out that took long, if it is to be said. */
function notePlan(explain: ExplainRequest | undefined, milliseconds: number, payloads: number): void {
  if (explain?.planFromMs === undefined || milliseconds < explain.planFromMs) return;
  const plan = explain.explanation?.summary ?? seenPlans(payloads);
  if (plan !== null) explain.plan = plan;
}

/** Whether the main thread would answer with this error, too. In a cluster it asks other replicas after those that this one may have alone. */
function isAnswer(error: TroupeError): boolean {
  return !ASKED_ELSEWHERE.has(error.code) && reasonOf(error) !== 'otherCollection';
}

const ASKED_ELSEWHERE: ReadonlySet<string> = new Set(['unavailable', 'storage', 'conflict']);

function isNewest({ newest, version }: OwnReadsNews): boolean {
  return Atomics.load(newest, 0) === version;
}

/** Bytes that kernels scored of its segments since the last call; also of reads that failed. */
function scoredBytes({ segments }: ReplicaSnapshot): number {
  return segments.reduce((sum, { reader }) => sum + reader.takeScoredBytes(), 0);
}

/** A read needs replicas that are asleep. */
class Asleep extends Error {
  constructor(readonly keys: readonly ReplicaKey[]) {
    super(`replicas ${keys.join()} are asleep`);
  }
}

/** A snapshot names a set of segments that has not come yet. */
class SetOnItsWay extends Error {}

function assertNever(value: never): never {
  throw new Error(`unknown message ${JSON.stringify(value)}`);
}
