/** What the settings say about snapshots: where they are kept, and which addresses they are fetched from. */

import { type AllowedAddresses, allowedAddresses } from '../../storage/snapshot-store/address-rules.js';
import { LocalSnapshotStore } from '../../storage/snapshot-store/local.js';
import { S3SnapshotStore } from '../../storage/snapshot-store/s3.js';
import type { SnapshotStore } from '../../storage/snapshot-store/snapshot-store.js';
import type { NodeSettings } from './settings.js';

const S3_KEY = 'storage.snapshots_config.s3_config';

/** One line for each setting that does not fit, starting with its key; empty when all is well. */
export function snapshotProblems({ service, storage }: NodeSettings): string[] {
  const { wrong } = allowedAddresses(service.snapshot_url_allow);
  const allow = wrong.map(
    (entry) =>
      `service.snapshot_url_allow: ${JSON.stringify(entry)} is neither the name of a host nor an address nor a network such as \`10.0.0.0/8\``,
  );
  return [...allow, ...(storage.snapshots_config.snapshots_storage === 's3' ? s3Problems(storage.snapshots_config.s3_config) : [])];
}

/** The store of a node. Nothing is read or made yet. freeBytesMin: of the disk, for what is copied to it. nowMs: the system's date. */
export function snapshotStoreFor({ storage }: NodeSettings, freeBytesMin: number, nowMs: () => number): SnapshotStore {
  const { s3_config: s3, snapshots_storage: kind } = storage.snapshots_config;
  if (kind === 'local') return new LocalSnapshotStore({ folder: storage.snapshots_path, freeBytesMin });
  const settings = {
    bucket: s3.bucket ?? '',
    region: given(s3.region),
    accessKey: given(s3.access_key),
    secretKey: given(s3.secret_key),
    endpointUrl: given(s3.endpoint_url),
  };
  return new S3SnapshotStore({ settings, freeBytesMin, nowMs });
}

/** `service.snapshot_url_allow`, whose entries fit. */
export function snapshotUrlsAllowed({ service }: NodeSettings): AllowedAddresses {
  return allowedAddresses(service.snapshot_url_allow).allowed;
}

function s3Problems(s3: NodeSettings['storage']['snapshots_config']['s3_config']): string[] {
  const problems: string[] = [];
  const endpoint = given(s3.endpoint_url);
  if (given(s3.bucket) === null) problems.push(`${S3_KEY}.bucket: must name the bucket for snapshots`);
  if (given(s3.region) === null && endpoint === null) {
    problems.push(`${S3_KEY}.region: must be the region of the bucket; for a store that is not Amazon's, give \`endpoint_url\``);
  }
  if (given(s3.access_key) === null && given(s3.secret_key) !== null)
    problems.push(`${S3_KEY}.access_key: must be given with \`secret_key\``);
  if (given(s3.secret_key) === null && given(s3.access_key) !== null)
    problems.push(`${S3_KEY}.secret_key: must be given with \`access_key\``);
  if (endpoint !== null && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ''))
    problems.push(`${S3_KEY}.endpoint_url: must be a URL that begins with http:// or https://`);
  return problems;
}

function given(value: string | null): string | null {
  return value === '' ? null : value;
}
