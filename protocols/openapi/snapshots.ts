/** Schemas of snapshots. */

import { RESTORE_PRIORITIES } from '../rest/snapshots.js';
import { COUNT, described, FLAG, fields, leaf, ref, TEXT, words } from './schema.js';

const SHA256 = leaf<string>({ type: 'string', format: 'sha256' });
const CHECKSUM = described('SHA-256 that the archive must have: 64 hexadecimal digits.', SHA256);
const RECOVERY = {
  priority: ref('SnapshotPriority'),
  checksum: CHECKSUM,
  api_key: described('Sent to the URL as `api-key`.', TEXT),
  until: described(
    'Troupe’s own: the operations of the collection’s log up to this time follow the snapshot. RFC 3339; the priority is `snapshot` then.',
    leaf<string>({ type: 'string', format: 'date-time' }),
  ),
  dry_run: described('Troupe’s own, with `until`: only tell up to which operation and time the restore would go.', FLAG),
};

/** Bytes of an archive. */
export const ARCHIVE = leaf<never>({ type: 'string', format: 'binary' });

export const SNAPSHOT_SCHEMAS = {
  SnapshotDescription: fields(
    { name: TEXT, size: described('Bytes.', COUNT) },
    {
      creation_time: described('UTC, without a zone.', TEXT),
      checksum: described('SHA-256 in hexadecimal digits.', SHA256),
      base: described('Troupe’s own: the snapshot that it cannot be restored without; only there where it has one.', TEXT),
    },
  ),
  SnapshotPriority: described(
    'Whose data a restored shard has where it has other replicas: theirs (`replica`, the default), that of the snapshot (`snapshot`), or that of ' +
      'the snapshot on this node alone (`no_sync`).',
    words(...RESTORE_PRIORITIES),
  ),
  RecoverSnapshot: fields(
    {
      location: described(
        'An HTTP(S) URL, or a `file://` URI of a file in the snapshots folder.',
        leaf<string>({ type: 'string', format: 'uri' }),
      ),
    },
    RECOVERY,
  ),
  RecoverShardSnapshot: fields({ location: described('As for a collection, or the name of a snapshot of the shard.', TEXT) }, RECOVERY),
};
