/** What the settings say about traces and metrics for a collector. */

import os from 'node:os';
import type { OtlpAddress } from '../../http/otlp/post.js';
import type { TraceLog } from '../../http/otlp/trace-log.js';
import { SettingsError } from './resolve.js';
import type { NodeSettings } from './settings.js';

export interface OtlpSettings {
  readonly address: OtlpAddress;
  /** Attributes of this process. */
  readonly resource: Readonly<Record<string, string>>;
  readonly traceRatio: number;
  /** 0: metrics are not sent. */
  readonly metricsPeriodMs: number;
}

/** Null: nothing is sent. Errors: SettingsError. */
export function otlpSettings({ otlp }: Pick<NodeSettings, 'otlp'>, version: string): OtlpSettings | null {
  const { endpoint, headers, metrics_period_sec: period, service_name: name, trace_ratio: traceRatio } = otlp;
  if (endpoint === null || endpoint === '') return null;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new SettingsError([`otlp.endpoint: '${endpoint}' is not the address of a collector, such as http://localhost:4318`]);
  const resource = {
    'service.name': name,
    'service.version': version,
    'service.instance.id': `${os.hostname()}:${process.pid}`,
    'host.name': os.hostname(),
  };
  return { address: { endpoint, headers: headersOf(headers) }, resource, traceRatio, metricsPeriodMs: period * 1000 };
}

/** The log of traces of the main thread; null: none are sent. */
export async function openTraces(settings: OtlpSettings | null, version: string): Promise<TraceLog | null> {
  if (settings === null) return null;
  const { TRACE_MEMORY_BYTES, TraceLog } = await import('../../http/otlp/trace-log.js');
  const { address, resource, traceRatio: ratio } = settings;
  return new TraceLog({ address, version, resource, ratio, memory: new SharedArrayBuffer(TRACE_MEMORY_BYTES) });
}

/** Of `name=value`. */
function headersOf(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text, at) => {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e][\x20-\x7e]*)$/.exec(text) ?? [];
    // The text may hold a secret.
    if (name === undefined || value === undefined) throw new SettingsError([`otlp.headers: entry ${at + 1} is not <name>=<value>`]);
    return [name.toLowerCase(), value.trim()];
  });
  return Object.fromEntries(pairs);
}
