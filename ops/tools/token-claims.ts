/** The claims of a token from the options of `troupe token`. */

import { ToolError } from '../client/tool.js';
import { spanMs } from './moments.js';

export interface TokenOptions {
  readonly access: string | undefined;
  readonly collection: readonly string[] | undefined;
  readonly tenant: readonly string[] | undefined;
  readonly expires: string | undefined;
  readonly valueExists: readonly string[] | undefined;
  readonly subject: string | undefined;
}

/** Source: specification, «JWT access control». Errors: ToolError, naming the option. */
export function claimsFrom(options: TokenOptions, nowMs: number): Record<string, unknown> {
  const { access, collection, expires, subject, tenant, valueExists } = options;
  if ((access === undefined) === (collection === undefined))
    throw wrong(
      'say what it is for: --access r (read everything) or m (manage everything), or --collection <name>:r or <name>:rw for each collection',
    );
  if (access !== undefined && access !== 'r' && access !== 'm') throw wrong(`--access: '${access}' is neither r nor m`);
  return {
    ...(subject === undefined ? {} : { sub: subject }),
    ...(expires === undefined ? {} : { exp: expiry(expires, nowMs) }),
    ...(valueExists === undefined ? {} : { value_exists: valueExistsOf(valueExists) }),
    access: access ?? withTenants((collection ?? []).map(grant), tenant ?? []),
  };
}

interface Grant {
  readonly collection: string;
  readonly access: string;
  readonly tenant?: { readonly key: string; readonly value: unknown };
}

/** texts: `<collection>:<key>=<value>`, at most one of a collection that is granted. */
function withTenants(grants: readonly Grant[], texts: readonly string[]): readonly Grant[] {
  const tenants = new Map(
    texts.map((text) => {
      const { collection, key, value } = payloadValue('--tenant', text);
      if (!grants.some((entry) => entry.collection === collection))
        throw wrong(`--tenant: '${text}' needs --collection ${collection}:r or :rw`);
      return [collection, { key, value }];
    }),
  );
  if (tenants.size < texts.length) throw wrong('--tenant: one for each collection');
  return grants.map((entry) => {
    const tenant = tenants.get(entry.collection);
    return tenant === undefined ? entry : { ...entry, tenant };
  });
}

function grant(text: string): Grant {
  const at = text.lastIndexOf(':');
  const [collection, access] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
  if (collection === '' || (access !== 'r' && access !== 'rw')) throw wrong(`--collection: '${text}' is not <name>:r or <name>:rw`);
  return { collection, access };
}

function expiry(text: string, nowMs: number): number {
  const span = spanMs(text);
  if (span === null) throw wrong(`--expires: '${text}' is no span such as 90s, 30m, 8h or 7d`);
  return Math.floor((nowMs + span) / 1000);
}

function valueExistsOf(texts: readonly string[]): { collection: string; matches: { key: string; value: unknown }[] } {
  const values = texts.map((text) => payloadValue('--value-exists', text));
  const collection = values[0]?.collection as string;
  if (values.some((value) => value.collection !== collection)) throw wrong('--value-exists: all values must be of one collection');
  return { collection, matches: values.map(({ key, value }) => ({ key, value })) };
}

/** option: for the error. */
function payloadValue(option: string, text: string): { collection: string; key: string; value: unknown } {
  const [, collection = '', key = '', value = ''] = /^([^:]+):([^=]+)=(.*)$/s.exec(text) ?? [];
  if (collection === '') throw wrong(`${option}: '${text}' is not <collection>:<key>=<value>`);
  return { collection, key, value: scalar(value) };
}

/** A whole number, a boolean, or a text; in quotes it is a text whatever it looks like. */
function scalar(text: string): unknown {
  if (/^(-?\d{1,15}|true|false|".*")$/s.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

function wrong(message: string): ToolError {
  return new ToolError(message, 2);
}
