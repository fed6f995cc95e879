/**
 * The log: one line per entry, as text or JSON, to one or more outputs, each with its own levels.
 * A level specification is `INFO`, or a list such as `warn,http=debug,actors=trace`: levels by module.
 */

export const LEVELS = ['ERROR', 'WARN', 'INFO', 'DEBUG', 'TRACE'] as const;
export type LogLevel = (typeof LEVELS)[number];
/** For settings. */
export type LogFormat = 'text' | 'json';
/** terminal: as text, with colours, a short time and no dates. */
export type OutputFormat = LogFormat | 'terminal';
export type Facts = Record<string, unknown>;

/** Which entries go through: those of a module at its own level or, where it has none, at the general one. */
export interface LevelFilter {
  /** Index into LEVELS of the last one that goes through; -1: nothing does. */
  readonly general: number;
  readonly byModule: ReadonlyMap<string, number>;
}

export interface LogOutput {
  readonly format: OutputFormat;
  readonly filter: LevelFilter;
  /** Takes a line with its line end. */
  readonly write: (line: string) => void;
}

export interface ModuleLog {
  error(message: string, facts?: Facts): void;
  warn(message: string, facts?: Facts): void;
  info(message: string, facts?: Facts): void;
  debug(message: string, facts?: Facts): void;
  trace(message: string, facts?: Facts): void;
  /** Whether an entry of this level goes anywhere. */
  enabled(level: LogLevel): boolean;
}

/** The filter that a specification describes, or undefined when it is none. */
export function parseLevels(specification: string): LevelFilter | undefined {
  let general = LEVELS.indexOf('INFO');
  const byModule = new Map<string, number>();
  for (const part of specification.split(',')) {
    const [left, right] = part.split('=').map((side) => side.trim());
    if (left === undefined || left === '') return undefined;
    const level = levelIndex(right ?? left);
    if (level === undefined) return undefined;
    if (right === undefined) general = level;
    else byModule.set(left, level);
  }
  return { general, byModule };
}

/** A log whose entries carry the name of a module. */
export function moduleLog(module: string, outputs: readonly LogOutput[], nowMs: () => number): ModuleLog {
  const highest = Math.max(-1, ...outputs.map((output) => levelOf(output.filter, module)));
  const write = (level: number, message: string, facts: Facts | undefined) => {
    if (level > highest) return;
    for (const output of outputs) {
      if (level > levelOf(output.filter, module)) continue;
      output.write(formatEntry(output.format, nowMs(), LEVELS[level] as LogLevel, module, message, facts));
    }
  };
  return {
    error: (message, facts) => write(0, message, facts),
    warn: (message, facts) => write(1, message, facts),
    info: (message, facts) => write(2, message, facts),
    debug: (message, facts) => write(3, message, facts),
    trace: (message, facts) => write(4, message, facts),
    enabled: (level) => LEVELS.indexOf(level) <= highest,
  };
}

/** Whether a module has a level of its own that lets something through. */
export function hasOwnLevel(outputs: readonly LogOutput[], module: string): boolean {
  return outputs.some(({ filter }) => (filter.byModule.get(module) ?? -1) >= 0);
}

/** Colours of a terminal (SGR). */
const DIM = 2;
const LEVEL_COLOURS: Readonly<Record<LogLevel, number>> = { ERROR: 31, WARN: 33, INFO: 32, DEBUG: 36, TRACE: 90 };

function coloured(code: number, text: string): string {
  return `\u001b[${code}m${text}\u001b[0m`;
}

/** One line of the log. */
export function formatEntry(format: OutputFormat, timeMs: number, level: LogLevel, module: string, message: string, facts?: Facts): string {
  const timestamp = new Date(timeMs).toISOString();
  const known = facts === undefined ? [] : Object.entries(facts).filter(([, value]) => value !== undefined);
  if (format === 'json') {
    const entry = { timestamp, level, module, message, ...Object.fromEntries(known.map(([key, value]) => [key, plain(value)])) };
    return `${JSON.stringify(entry)}\n`;
  }
  if (format === 'terminal') {
    const tail = known.map(([key, value]) => ` ${coloured(DIM, `${key}=`)}${shownOnTerminal(textOf(value))}`).join('');
    const head = `${coloured(DIM, timestamp.slice(11, 23))} ${coloured(LEVEL_COLOURS[level], level.padEnd(5))} ${coloured(DIM, `${module}:`)}`;
    return `${head} ${shownOnTerminal(oneLine(message))}${tail}\n`;
  }
  const tail = known.map(([key, value]) => ` ${key}=${textOf(value)}`).join('');
  return `${timestamp} ${level.padEnd(5)} ${module}: ${oneLine(message)}${tail}\n`;
}

function levelOf(filter: LevelFilter, module: string): number {
  return filter.byModule.get(module) ?? filter.general;
}

function levelIndex(text: string): number | undefined {
  const upper = text.toUpperCase();
  if (upper === 'OFF') return -1;
  const index = (LEVELS as readonly string[]).indexOf(upper);
  return index < 0 ? undefined : index;
}

function textOf(value: unknown): string {
  const content = plain(value);
  if (typeof content === 'string') return /^[^\s"=]+$/.test(content) ? content : JSON.stringify(content);
  return JSON.stringify(content) ?? String(content);
}

/** A value that JSON can carry: errors as their message, big integers as digits. */
function plain(value: unknown): unknown {
  if (value instanceof Error) return value.message;
  if (typeof value === 'bigint') return value.toString();
  return value;
}

/** What clients send, and the log repeats, must not steer the terminal. */
function shownOnTerminal(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}

/** A log entry is one line, whatever its message holds. */
function oneLine(text: string): string {
  return text.replace(/\r?\n/g, '\\n');
}
