/**
 * Keeps what TLS shows as the files have it: looks at them every few seconds, reads them when they have changed and each `tls.cert_ttl`, and tells
 * who shows them. Files that do not fit together leave what is shown as it is.
 */

import { stat } from 'node:fs/promises';
import type { PeerTls } from '../../cluster/transport/entrance.js';
import type { DoorTls } from '../../http/context/tls-sockets.js';
import { crypto } from '../../protocols/late-modules.js';
import { SettingsError } from '../config/resolve.js';
import type { NodeSettings } from '../config/settings.js';
import type { ModuleLog } from '../log.js';
import { type ReadCertificates, readCertificates, type TlsFiles, type TlsWanted, tlsWanted } from './certificates.js';

const LOOK_EVERY_MS = 2000;
/** Source: `ticketKeys` of node:tls. */
const TICKET_KEY_BYTES = 48;

export interface TlsMaterial {
  /** Null: clients connect without TLS. */
  readonly door: DoorTls | null;
  /** Null: peers connect without TLS. */
  readonly peers: PeerTls | null;
}

export interface TlsClock {
  /** Milliseconds since the epoch. */
  readonly dateMs: () => number;
  /** Milliseconds of a clock that never goes back. */
  readonly monotonicMs: () => number;
}

/** Null where no setting asks for TLS. Errors: SettingsError where a file is missing or does not fit. */
export function openTls(settings: NodeSettings, clock: TlsClock): TlsKeeper | null {
  const wanted = tlsWanted(settings);
  if (wanted === null) return null;
  const read = readCertificates(settings, wanted, clock.dateMs());
  if (read.files === null) throw new SettingsError([...read.problems]);
  return new TlsKeeper(settings, wanted, clock, read.files, read.warnings);
}

export class TlsKeeper {
  #files: TlsFiles;
  #material: TlsMaterial;
  #onChange: (material: TlsMaterial) => void = () => {};
  /** What the system told of the files when they were read last. */
  #seen: string | null = null;
  #readMs: number;
  /** Problems of the last look, which are told when the next one meets them again: files are not replaced all at once. */
  #problems = '';
  #told = '';
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly settings: NodeSettings,
    private readonly wanted: TlsWanted,
    private readonly clock: TlsClock,
    files: TlsFiles,
    /** Of the files that were read at the start. */
    readonly warnings: readonly string[],
  ) {
    this.#files = files;
    this.#material = this.#made(files);
    this.#readMs = clock.monotonicMs();
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** Looks at the files from now on, unless `tls.cert_ttl` is null. */
  watch(log: ModuleLog, onChange: (material: TlsMaterial) => void): void {
    this.#onChange = onChange;
    if (this.settings.tls.cert_ttl === null) return;
    this.#timer = setInterval(() => void this.look(log), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Reads the files if they have changed or it is time to. */
  async look(log: ModuleLog): Promise<void> {
    const seen = await this.#signs();
    const { cert_ttl: ttl } = this.settings.tls;
    const nowMs = this.clock.monotonicMs();
    const isTime = ttl !== null && nowMs - this.#readMs >= 1000 * ttl;
    if (seen === this.#seen && !isTime && this.#problems === '') return;
    this.#seen = seen;
    this.#readMs = nowMs;
    this.#take(readCertificates(this.settings, this.wanted, this.clock.dateMs()), log);
  }

  #take({ files, problems, subject, validTo, warnings }: ReadCertificates, log: ModuleLog): void {
    const text = problems.join('; ');
    const isNews = text !== this.#told && text === this.#problems;
    this.#problems = text;
    if (files === null) {
      if (!isNews) return;
      this.#told = text;
      log.error('the changed files of TLS cannot be used, and what was read before stays in use', { reason: text });
      return;
    }
    this.#told = '';
    if (files.cert === this.#files.cert && files.key === this.#files.key && files.ca === this.#files.ca) return;
    this.#files = files;
    this.#material = this.#made(files);
    for (const warning of warnings) log.warn(warning);
    log.info('new connections get the changed certificate', { subject, valid_to: validTo });
    this.#onChange(this.#material);
  }

  #made(files: TlsFiles): TlsMaterial {
    const { clients, peers, service } = this.wanted;
    const ticketKeys = new Uint8Array(crypto().randomBytes(TICKET_KEY_BYTES));
    const door = { cert: files.cert, key: files.key, clientCa: clients ? files.ca : null, ticketKeys };
    return { door: service ? door : null, peers: peers && files.ca !== null ? { cert: files.cert, key: files.key, ca: files.ca } : null };
  }

  /** What tells that a file was replaced or written; also where a name leads to another file. */
  async #signs(): Promise<string> {
    const { ca_cert: ca, cert, key } = this.settings.tls;
    const signs = [cert, key, ...(this.#files.ca === null ? [] : [ca])].map((path) =>
      stat(path).then(
        ({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`,
        () => 'none',
      ),
    );
    return (await Promise.all(signs)).join(', ');
  }
}
