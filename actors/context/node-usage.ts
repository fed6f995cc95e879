/** What this node uses of its machine. Each in percent; null: not known. */
export type NodeUsage = () => {
  /** Of the memory that this process may have. */
  readonly memoryPercent: number | null;
  /** Of the disk of the storage folder. */
  readonly diskPercent: number | null;
};

/** Of a node that looks at neither. */
export const USAGE_UNKNOWN: NodeUsage = () => ({ memoryPercent: null, diskPercent: null });
