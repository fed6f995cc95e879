/** Who may do what. Source: specification, «Access table». */

export type Right = 'yes' | 'no' | 'partly';

/** Manage, global read-only, read-write and read-only of one collection. */
export type Level = 'manage' | 'read' | 'collection-write' | 'collection-read';

export const ACCESS_LEVELS: readonly { readonly level: Level; readonly title: string }[] = [
  { level: 'manage', title: 'Manage all' },
  { level: 'read', title: 'Read all' },
  { level: 'collection-write', title: 'Read and write some collections' },
  { level: 'collection-read', title: 'Read some collections' },
];

const RIGHTS: Readonly<Record<string, Right>> = { Y: 'yes', N: 'no', P: 'partly' };

/** One letter for each level, in the order of `ACCESS_LEVELS`: Y allowed, N denied, P only what the token names. */
const TABLE: readonly (readonly [operation: string, rights: string])[] = [
  ['List collections', 'YYPP'],
  ['Get a collection, check that it exists, its shards and replicas', 'YYYY'],
  ['Create, change or delete a collection', 'YNNN'],
  ['Move, copy or drop replicas', 'YNNN'],
  ['Change aliases', 'YNNN'],
  ['List aliases', 'YYPP'],
  ['Create or delete a shard key', 'YNNN'],
  ['Create or delete a payload index', 'YNYN'],
  ['List or download snapshots of a collection or shard', 'YYYY'],
  ['Create or delete snapshots of a collection or shard', 'YNYN'],
  ['Upload or recover snapshots', 'YNNN'],
  ['List or download snapshots of the whole storage', 'YYNN'],
  ['Create or delete snapshots of the whole storage', 'YNNN'],
  ['Get the state of the cluster', 'YYNN'],
  ['Recover the Raft state, remove a peer', 'YNNN'],
  ['Get, scroll, search, query, recommend, discover, count points', 'YYYY'],
  ['Upsert, update or delete points, vectors and payloads', 'YNYN'],
  ['Telemetry and metrics', 'YYNN'],
  ['Version and health', 'YYYY'],
];

export const ACCESS_TABLE: readonly { readonly operation: string; readonly rights: readonly Right[] }[] = TABLE.map(
  ([operation, rights]) => ({
    operation,
    rights: [...rights].map((letter) => RIGHTS[letter] as Right),
  }),
);
