/** The live tree of actors, and what one of them did last. */

import { type ReactNode, useState } from 'react';
import { useResult } from '../base/live.js';
import { actorsOf, allOf, engineOf, findActor, isWanted, nameOf } from '../model/actors.js';
import type { ActorReport, Telemetry, WorkerReport } from '../model/api-types.js';
import { bytes, count, percent, seconds } from '../model/format.js';
import { Bar, Failure, Loading, State, Tile } from '../parts/basics.js';
import { toneOf } from '../parts/states.js';

/** Mailboxes are not told of. */
const OPTIONS = { periodMs: 1000, followed: { topics: ['actors'] }, followedPeriodMs: 5000 };

export function ActorsPage(): ReactNode {
  const { value, error } = useResult<Telemetry>('/telemetry', OPTIONS);
  const [wanted, setWanted] = useState('');
  const [picked, setPicked] = useState<string | null>(null);
  const root = value === undefined ? undefined : actorsOf(value);
  if (value === undefined || root === undefined) return error === null ? <Loading /> : <Failure error={error} />;
  const all = allOf(root);
  const engine = engineOf(value);
  const chosen = findActor(root, picked ?? root.path) ?? root;
  return (
    <>
      <div className="head">
        <h1>Actors</h1>
        <span className="grow" />
        <input
          type="search"
          aria-label="Find an actor"
          placeholder="Find an actor or a state"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
      </div>
      <Failure error={error} />
      <div className="tiles">
        <Tile title="actors">{count(all.length)}</Tile>
        <Tile title="messages handled">{count(sum(all, ({ processed }) => processed))}</Tile>
        <Tile title="messages waiting">{count(sum(all, ({ mailbox }) => mailbox.depth))}</Tile>
        <Tile title="restarts">{count(sum(all, ({ restarts }) => restarts))}</Tile>
        {engine?.memory !== undefined && (
          <Tile title={`of a budget of ${bytes(engine.memory.budget_bytes)}`}>{bytes(engine.memory.used_bytes)}</Tile>
        )}
        {engine?.disk !== undefined && (
          <Tile title={`of the disk free (${percent(engine.disk.free_bytes, engine.disk.total_bytes)})`}>
            {bytes(engine.disk.free_bytes)}
          </Tile>
        )}
      </div>
      <div className="two">
        <section className="sheet" aria-label="Tree of actors">
          <h2>Tree</h2>
          <ul className="tree">
            <Node actor={root} wanted={wanted} chosen={chosen.path} onPick={setPicked} />
          </ul>
        </section>
        <section className="sheet" aria-label={`Actor ${chosen.path}`}>
          <Recorder actor={chosen} />
        </section>
      </div>
      {engine !== undefined && <Workers workers={engine.workers} />}
    </>
  );
}

interface NodeProps {
  readonly actor: ActorReport;
  readonly wanted: string;
  readonly chosen: string;
  readonly onPick: (path: string) => void;
}

function Node({ actor, wanted, chosen, onPick }: NodeProps): ReactNode {
  if (wanted !== '' && !isWanted(actor, wanted)) return null;
  const { kind, mailbox, path, replicaState, restarts, state } = actor;
  return (
    <li>
      <button type="button" className="node" aria-pressed={path === chosen} onClick={() => onPick(path)}>
        <b>{nameOf(actor)}</b>
        <span className="small faint">{kind}</span>
        <State tone={toneOf(replicaState ?? state)}>
          {replicaState === undefined || replicaState === state ? state : `${state}, ${replicaState}`}
        </State>
        {mailbox.depth > 0 && <span className="tag">{`${mailbox.depth} waiting`}</span>}
        {restarts > 0 && <span className="tag bad">{`${restarts} restarts`}</span>}
      </button>
      {actor.children.length > 0 && (
        <ul className="tree">
          {actor.children.map((child) => (
            <Node key={child.path} actor={child} wanted={wanted} chosen={chosen} onPick={onPick} />
          ))}
        </ul>
      )}
    </li>
  );
}

function Recorder({ actor }: { readonly actor: ActorReport }): ReactNode {
  const { kind, lastError, mailbox, path, processed, recent, state, uptimeMs } = actor;
  return (
    <>
      <h2 className="mono">{path}</h2>
      <p>
        <State tone={toneOf(state)}>{state}</State>
        <span className="faint">{` ${kind}, up for ${seconds(uptimeMs / 1000)}, ${count(processed)} messages handled`}</span>
      </p>
      <h3>{`Mailbox: ${mailbox.depth} of ${mailbox.capacity}`}</h3>
      <Bar share={mailbox.depth / mailbox.capacity} label="Mailbox" />
      {lastError !== null && <div className="notice bad">{`${timeOf(lastError.timeMs)} ${lastError.message}`}</div>}
      <h3>Flight recorder</h3>
      {recent.length === 0 && <p className="faint">It has not handled a message yet.</p>}
      <ol className="recorder">
        {[...recent].reverse().map((entry, at) => (
          <li key={keyOf(entry, recent.length - at)}>
            <span className="small faint mono">{timeOf(entry.timeMs)}</span> <b>{entry.message}</b> {entry.summary}{' '}
            <span className="tag">{entry.state}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function Workers({ workers }: { readonly workers: readonly WorkerReport[] }): ReactNode {
  return (
    <section className="sheet scroll" aria-label="Threads">
      <h2>Threads of the engine</h2>
      <table>
        <thead>
          <tr>
            <th>Thread</th>
            <th>State</th>
            <th className="number">Waiting</th>
            <th className="number">Requests done</th>
            <th className="number">Restarts</th>
          </tr>
        </thead>
        <tbody>
          {workers.map(({ name, begun, up, stuck, depth, processed, restarts }) => (
            <tr key={name}>
              <td className="mono">{name}</td>
              <td>
                {begun ? (
                  <State tone={stuck !== null || !up ? 'bad' : 'good'}>
                    {stuck === null ? (up ? 'up' : 'down') : `silent: ${stuck.call}`}
                  </State>
                ) : (
                  <State tone="wait">not needed yet</State>
                )}
              </td>
              <td className="number">{count(depth)}</td>
              <td className="number">{count(processed)}</td>
              <td className="number">{count(restarts)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Two messages of one millisecond may be alike. */
function keyOf({ timeMs, message }: ActorReport['recent'][number], place: number): string {
  return `${timeMs} ${message} ${place}`;
}

function sum(actors: readonly ActorReport[], of: (actor: ActorReport) => number): number {
  return actors.reduce((total, actor) => total + of(actor), 0);
}

/** With milliseconds, as much happens within one. */
function timeOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(11, 23);
}
