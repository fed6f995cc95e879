/** Commands of `troupe` with options of their own; each is a file of this folder, loaded when it is asked for. */

/** What each does, for `troupe --help`. */
export const TOOLS = {
  collections: 'list, show, create and delete collections',
  points: 'get, scroll, count, upsert and delete points',
  query: 'find points by a vector, a point or a text',
  explain: 'how a query is answered, and what would make it cheaper',
  import: 'points from JSONL, CSV, npy and Parquet files, or a collection of another server',
  export: 'points of a collection to a JSONL or Parquet file',
  snapshot: 'create, list, download, upload, restore and delete snapshots',
  cluster: 'nodes, shards, moves, drains',
  actors: 'the tree of actors of a node',
  key: 'print a new strong key for service.api_key',
  token: 'sign a token for clients',
  audit: 'show the audit log',
  completion: 'completion for bash, zsh and fish',
} as const;

export type ToolName = keyof typeof TOOLS;
export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[];

/** Null for a word that is none. */
export function toolName(word: string | undefined): ToolName | null {
  return TOOL_NAMES.find((name) => name === word) ?? null;
}
