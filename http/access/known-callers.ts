/** Tells callers by their credentials. Each thread that has a door has one of these; whoever has no keys has none. */

import type { Caller, KeySetting, Stranger } from './caller.js';
import type { TokenClaims } from './claims.js';
import { Keys } from './keys.js';
import type { checkSignedToken } from './token.js';

/** What a node lets requests in by. At least one key is there, and none is empty. */
export interface AccessSettings {
  readonly keys: ReadonlyMap<KeySetting, string>;
  /** `service.jwt_rbac`: whoever knows a key for everything can sign tokens with it. */
  readonly tokens: boolean;
}

/** A token whose signature and claims were checked. */
interface KnownToken {
  readonly claims: TokenClaims;
  readonly caller: Caller;
}

/** A clock that is off by no more than this makes no difference. Source: specification, «JWT access control». */
const GRACE_SECONDS = 30;
/** Checking a signature takes some tens of microseconds, so these are not checked again. */
const KNOWN_TOKENS_MAX = 1024;
/** Longer credentials are no keys and no tokens. */
const CREDENTIAL_CHARACTERS_MAX = 8192;

const MISSING: Stranger = { kind: 'stranger', reason: 'missing', text: 'Must provide an API key or an Authorization bearer token' };
const UNKNOWN: Stranger = { kind: 'stranger', reason: 'unknown', text: 'Invalid API key or JWT' };
const EXPIRED: Stranger = { kind: 'stranger', reason: 'expired', text: 'ExpiredSignature' };
const EARLY: Stranger = { kind: 'stranger', reason: 'early', text: 'ImmatureSignature' };
const BAD_SIGNATURE: Stranger = { kind: 'stranger', reason: 'badSignature', text: 'InvalidSignature' };

/** Keys that tokens may be signed with: during a rotation both hold. */
const SIGNING: readonly KeySetting[] = ['service.api_key', 'service.alt_api_key'];

export class KnownCallers {
  readonly #keys: Keys;
  readonly #secrets: readonly string[];
  /** In the order of their first use. */
  readonly #known = new Map<string, KnownToken>();

  /** check: null where there are no tokens. now: milliseconds since the epoch, as tokens have it. Use `openKnownCallers`. */
  constructor(
    readonly settings: AccessSettings,
    private readonly check: typeof checkSignedToken | null,
    private readonly now: () => number,
  ) {
    this.#keys = new Keys(settings.keys);
    this.#secrets = SIGNING.flatMap((setting) => settings.keys.get(setting) ?? []);
  }

  /** credential: as `credentialOf` has found it. A token with `valueExists` is in force only if that is so. */
  callerOf(credential: string | null): Caller {
    if (credential === null) return MISSING;
    const setting = this.#keys.find(credential);
    if (setting !== null) return KEY_HOLDERS[setting];
    if (this.check === null || credential.length > CREDENTIAL_CHARACTERS_MAX) return UNKNOWN;
    const known = this.#known.get(credential);
    if (known !== undefined) return this.#inForce(credential, known);
    const token = this.check(credential, this.#secrets);
    switch (token.kind) {
      case 'noToken':
        return UNKNOWN;
      case 'badSignature':
        return BAD_SIGNATURE;
      case 'badClaims':
        return { kind: 'stranger', reason: 'badClaims', text: `Invalid API key or JWT: ${token.problem}` };
      case 'signed': {
        const { claims, fingerprint } = token;
        const { access, subject, valueExists } = claims;
        return this.#inForce(credential, { claims, caller: { kind: 'token', subject, fingerprint, access, valueExists } });
      }
      default:
        return token satisfies never;
    }
  }

  #inForce(token: string, known: KnownToken): Caller {
    const nowSeconds = this.now() / 1000;
    if (nowSeconds > known.claims.expires + GRACE_SECONDS) {
      this.#known.delete(token);
      return EXPIRED;
    }
    if (nowSeconds < known.claims.notBefore - GRACE_SECONDS) return EARLY;
    if (!this.#known.has(token)) this.#remember(token, known);
    return known.caller;
  }

  #remember(token: string, known: KnownToken): void {
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size >= KNOWN_TOKENS_MAX) this.#known.delete(oldest);
    this.#known.set(token, known);
  }
}

const KEY_HOLDERS: Readonly<Record<KeySetting, Caller>> = {
  'service.api_key': { kind: 'key', setting: 'service.api_key' },
  'service.alt_api_key': { kind: 'key', setting: 'service.alt_api_key' },
  'service.read_only_api_key': { kind: 'key', setting: 'service.read_only_api_key' },
};

/** settings: null: there are no keys. */
export async function openKnownCallers(settings: AccessSettings | null, now: () => number): Promise<KnownCallers | null> {
  if (settings === null) return null;
  const check = settings.tokens ? (await import('./token.js')).checkSignedToken : null;
  return new KnownCallers(settings, check, now);
}
