/** Commands of `troupe` with options of their own; each is a file of this folder, loaded when it is asked for. */

export const TOOLS = ['key', 'token', 'audit'] as const;
export type ToolName = (typeof TOOLS)[number];
