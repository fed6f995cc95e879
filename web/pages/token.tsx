/** Makes tokens, and shows what somebody who has one may do. Nothing that is entered here is sent anywhere. */

import { type ReactNode, useState } from 'react';
import { ACCESS_LEVELS, ACCESS_TABLE, type Level, type Right } from '../model/access-table.js';
import { claimsOf, signToken } from '../model/token.js';
import { CopyButton } from '../parts/basics.js';

const EXPIRIES: readonly (readonly [title: string, seconds: number | null])[] = [
  ['in an hour', 3600],
  ['in a day', 86_400],
  ['in 30 days', 30 * 86_400],
  ['in a year', 365 * 86_400],
  ['never', null],
];
const MARKS: Readonly<Record<Right, string>> = { yes: 'yes', no: 'no', partly: 'only its own' };

export function TokenPage(): ReactNode {
  const [key, setKey] = useState('');
  const [level, setLevel] = useState<Level>('collection-read');
  const [collections, setCollections] = useState('');
  const [expiry, setExpiry] = useState(1);
  const [bound, setBound] = useState(false);
  const [exists, setExists] = useState({ collection: '', key: '', value: '' });
  const names = collections
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const needsNames = level === 'collection-read' || level === 'collection-write';
  const isComplete = key !== '' && (!needsNames || names.length > 0) && (!bound || (exists.collection !== '' && exists.key !== ''));
  const wish = {
    level,
    collections: names,
    expiresInSec: (EXPIRIES[expiry] as readonly [string, number | null])[1],
    exists: bound ? exists : null,
  };
  const claims = claimsOf(wish, Date.now() / 1000);
  const token = isComplete ? signToken(claims, key) : '';
  return (
    <>
      <div className="head">
        <h1>Tokens</h1>
      </div>
      <div className="two">
        <section className="sheet" aria-label="What the token allows">
          <p className="small faint">
            A token says what its owner may do. The node checks it by its API key (<code>service.api_key</code>, with{' '}
            <code>service.jwt_rbac: true</code>). The key stays on this page.
          </p>
          <form style={{ display: 'grid', gap: '0.8rem' }} onSubmit={(event) => event.preventDefault()}>
            <label>
              API key of the node
              <input type="password" autoComplete="off" value={key} onChange={(event) => setKey(event.target.value)} />
            </label>
            <label>
              Access
              <select value={level} onChange={(event) => setLevel(event.target.value as Level)}>
                {ACCESS_LEVELS.map(({ level: one, title }) => (
                  <option key={one} value={one}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
            {needsNames && (
              <label>
                Collections, with commas between them
                <input value={collections} onChange={(event) => setCollections(event.target.value)} />
              </label>
            )}
            <label>
              Expires
              <select value={expiry} onChange={(event) => setExpiry(Number(event.target.value))}>
                {EXPIRIES.map(([title], at) => (
                  <option key={title} value={at}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
            <label className="line">
              <input type="checkbox" checked={bound} onChange={(event) => setBound(event.target.checked)} />
              Valid only while a certain point exists, so that it can be revoked
            </label>
            {bound && (
              <fieldset>
                <legend className="small">A point of</legend>
                <label>
                  Collection
                  <input value={exists.collection} onChange={(event) => setExists({ ...exists, collection: event.target.value })} />
                </label>
                <label>
                  Field of the payload
                  <input value={exists.key} onChange={(event) => setExists({ ...exists, key: event.target.value })} />
                </label>
                <label>
                  Its value
                  <input value={exists.value} onChange={(event) => setExists({ ...exists, value: event.target.value })} />
                </label>
              </fieldset>
            )}
          </form>
        </section>
        <section className="sheet" aria-label="The token">
          <div className="row">
            <h2 className="grow">Token</h2>
            {token !== '' && <CopyButton text={token} />}
          </div>
          <pre data-testid="token">{token === '' ? 'Fill in the form.' : token}</pre>
          <h3>What is in it</h3>
          <pre>{JSON.stringify(claims, null, 2)}</pre>
        </section>
      </div>
      <section className="sheet scroll" aria-label="Who may do what">
        <h2>Who may do what</h2>
        <AccessTable level={level} />
      </section>
    </>
  );
}

function AccessTable({ level }: { readonly level: Level }): ReactNode {
  return (
    <table>
      <thead>
        <tr>
          <th>Operation</th>
          {ACCESS_LEVELS.map(({ level: one, title }) => (
            <th key={one} aria-current={one === level ? 'true' : undefined}>
              {one === level ? <span className="tag">{title}</span> : title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {ACCESS_TABLE.map(({ operation, rights }) => (
          <tr key={operation}>
            <td>{operation}</td>
            {rights.map((right, at) => (
              <td
                key={(ACCESS_LEVELS[at] as { level: Level }).level}
                className={right === 'yes' ? 'good' : right === 'no' ? 'bad' : 'busy'}
              >
                {MARKS[right]}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
