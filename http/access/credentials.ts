/** Where a request carries its key or token. Source: contract, scenarios `security-api-key` and `security-jwt-claims`. */

export const KEY_FIELD = 'api-key';
export const AUTHORIZATION_FIELD = 'authorization';

/** A credential that no key and no token equals. */
const NONE_OF_ANYBODY = '';
const BEARER = 'Bearer ';

/**
 * The key or token of a request by its two fields, one character for each byte; null: the request has none. `api-key` goes before
 * `authorization`, of which only `Bearer` counts, in this spelling.
 */
export function credentialFrom(key: string | null, authorization: string | null): string | null {
  if (key !== null) return key;
  return authorization?.startsWith(BEARER) === true ? authorization.slice(BEARER.length) : null;
}

/**
 * The same of all fields of a request. With a field twice it has no valid credential: who reads a request on its way (a proxy) may not
 * agree which one counts. fields: names and values in turn; names in any case, as they came.
 */
export function credentialOf(fields: readonly string[]): string | null {
  let key: string | null = null;
  let authorization: string | null = null;
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] as string).toLowerCase();
    const value = fields[at + 1] as string;
    if (name === KEY_FIELD) {
      if (key !== null) return NONE_OF_ANYBODY;
      key = value;
    } else if (name === AUTHORIZATION_FIELD) {
      if (authorization !== null) return NONE_OF_ANYBODY;
      authorization = value;
    }
  }
  return credentialFrom(key, authorization);
}
