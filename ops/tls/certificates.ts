/** The files of TLS: what the settings need of them, and whether they fit together. */

import { readFileSync } from 'node:fs';
import { crypto, tls } from '../../protocols/late-modules.js';
import type { NodeSettings } from '../config/settings.js';

/** Texts of the files, as PEM. */
export interface TlsFiles {
  /** The certificate of the node, and those between it and the authority's. */
  readonly cert: string;
  readonly key: string;
  /** Null where nobody's certificate is looked at. */
  readonly ca: string | null;
}

export interface ReadCertificates {
  /** Null where there are problems. */
  readonly files: TlsFiles | null;
  /** One line each, starting with the key of the setting. */
  readonly problems: readonly string[];
  /** As `problems`, of what works, though not for every client. */
  readonly warnings: readonly string[];
  /** Of the certificate, for the log. */
  readonly subject: string;
  readonly validTo: string;
}

/** Settings that ask for TLS. */
export interface TlsWanted {
  /** `service.enable_tls` */
  readonly service: boolean;
  /** `service.verify_https_client_certificate` */
  readonly clients: boolean;
  /** `cluster.p2p.enable_tls`, in a cluster. */
  readonly peers: boolean;
}

/** Null: no setting does. */
export function tlsWanted({ cluster, service }: NodeSettings): TlsWanted | null {
  const peers = cluster.enabled && cluster.p2p.enable_tls;
  if (!service.enable_tls && !peers) return null;
  return { service: service.enable_tls, clients: service.enable_tls && service.verify_https_client_certificate, peers };
}

/** One line for each setting of TLS without effect, starting with its key. */
export function tlsProblems({ service }: NodeSettings): string[] {
  if (!service.verify_https_client_certificate || service.enable_tls) return [];
  return ['service.verify_https_client_certificate: needs service.enable_tls: without TLS no client shows a certificate'];
}

/** Reads the files, at once, and looks whether they fit together. nowMs: the date. */
export function readCertificates({ tls: paths }: NodeSettings, wanted: TlsWanted, nowMs: number): ReadCertificates {
  const problems: string[] = [];
  const text = (name: 'cert' | 'key' | 'ca_cert', reason: string): string => {
    try {
      return readFileSync(paths[name], 'utf8');
    } catch (error) {
      problems.push(`tls.${name}: cannot read ${paths[name]}, which ${reason} needs: ${whyUnreadable(error)}`);
      return '';
    }
  };
  const reason = wanted.service ? 'service.enable_tls' : 'cluster.p2p.enable_tls';
  const cert = text('cert', reason);
  const key = text('key', reason);
  const needsCa = wanted.peers || wanted.clients;
  const ca = needsCa ? text('ca_cert', wanted.peers ? 'cluster.p2p.enable_tls' : 'service.verify_https_client_certificate') : null;
  const files: TlsFiles = { cert, key, ca };
  if (problems.length > 0) return { files: null, problems, warnings: [], subject: '', validTo: '' };
  return judgeCertificates(files, paths, nowMs);
}

/** paths: of the files, for messages. nowMs: the date. */
export function judgeCertificates(files: TlsFiles, paths: NodeSettings['tls'], nowMs: number): ReadCertificates {
  const { X509Certificate, createPrivateKey } = crypto();
  const problems: string[] = [];
  const attempt = <Value>(name: 'cert' | 'key' | 'ca_cert', what: string, make: () => Value): Value | null => {
    try {
      return make();
    } catch (error) {
      problems.push(`tls.${name}: ${paths[name]} ${what}: ${(error as Error).message}`);
      return null;
    }
  };
  const certificate = attempt('cert', 'has no certificate as PEM', () => new X509Certificate(files.cert));
  const key = attempt('key', 'has no private key as PEM, without a passphrase', () => createPrivateKey(files.key));
  const { ca } = files;
  const authority = ca === null ? null : attempt('ca_cert', 'has no certificate as PEM', () => new X509Certificate(ca));
  if (certificate !== null && key !== null && !certificate.checkPrivateKey(key))
    problems.push(`tls.key: ${paths.key} is not the private key of the certificate in ${paths.cert} (tls.cert)`);
  if (problems.length === 0)
    attempt('cert', 'cannot be used', () =>
      tls().createSecureContext({ cert: files.cert, key: files.key, ...(ca === null ? {} : { ca }) }),
    );
  if (problems.length > 0 || certificate === null) return { files: null, problems, warnings: [], subject: '', validTo: '' };
  const warnings = [
    ...dateWarnings(`tls.cert: the certificate in ${paths.cert}`, certificate, nowMs),
    ...(authority === null ? [] : dateWarnings(`tls.ca_cert: the certificate in ${paths.ca_cert}`, authority, nowMs)),
  ];
  return { files, problems, warnings, subject: certificate.subject.split('\n').join(', '), validTo: certificate.validTo };
}

function dateWarnings(
  which: string,
  { validFrom, validTo }: { readonly validFrom: string; readonly validTo: string },
  nowMs: number,
): string[] {
  if (nowMs > Date.parse(validTo)) return [`${which} has expired (${validTo}): whoever verifies it refuses the connection`];
  if (nowMs < Date.parse(validFrom)) return [`${which} is not valid yet (before ${validFrom}): whoever verifies it refuses the connection`];
  return [];
}

function whyUnreadable(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'no permission';
  return code === 'EISDIR' ? 'it is a folder' : message;
}
