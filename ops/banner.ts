/** What a terminal shows when a node is there: where to click, where the data is, and whether a key is asked for. */

import { resolve } from 'node:path';
import type { NodeSettings } from './config/settings.js';

export interface BannerFacts {
  /** Addresses as the log has them. */
  readonly rest: string;
  readonly grpc?: string;
  readonly peers?: string;
  readonly version: string;
}

const BOLD = 1;
const DIM = 2;
const LINK = 36;
const ADVICE = 33;

/** isColoured: with colours. */
export function startBanner(settings: Pick<NodeSettings, 'service' | 'storage'>, facts: BannerFacts, isColoured: boolean): string {
  const { service, storage } = settings;
  const paint = (code: number, text: string): string => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text);
  const rest = reachable(facts.rest);
  const keys = [service.api_key, service.alt_api_key, service.read_only_api_key].some((key) => key !== null && key !== '');
  const rows: (readonly [string, string])[] = [
    ...(service.enable_static_content ? [['Dashboard', paint(LINK, `${rest}/dashboard`)] as const] : []),
    ['API', `${paint(LINK, `${rest}/docs`)}`],
    ['REST', rest],
    ...(facts.grpc === undefined ? [] : [['gRPC', reachable(facts.grpc)] as const]),
    ...(facts.peers === undefined ? [] : [['Peers', facts.peers] as const]),
    ['Data', resolve(storage.storage_path)],
    [
      'Keys',
      keys
        ? `clients need one${service.jwt_rbac ? ', or a token' : ''}`
        : paint(ADVICE, 'none are set: whoever reaches the node may do everything'),
    ],
  ];
  const lines = rows.map(([name, value]) => `  ${paint(DIM, name.padEnd(10))} ${value}\n`);
  return `\n  ${paint(BOLD, `Troupe ${facts.version}`)}\n\n${lines.join('')}\n`;
}

/** An address that listens everywhere is reached here by this machine's name. */
function reachable(address: string): string {
  return address.replace(/(^|\/\/)(0\.0\.0\.0|\[::\])(?=:|$)/, '$1localhost');
}
