/** What the optimizers of a collection do now, and a timeline of what they did. */

import type { ReactNode } from 'react';
import type { Optimization, OptimizationProgress, Optimizations } from '../model/api-types.js';
import type { Tone } from '../model/condition.js';
import { count, moment, percent, seconds } from '../model/format.js';
import { type Span, shareDone, spansOf } from '../model/timeline.js';
import { Bar, State, Tile } from '../parts/basics.js';

const TONES: Readonly<Record<Span['outcome'], Tone>> = { done: 'good', optimizing: 'busy', cancelled: 'wait', error: 'bad' };

export function OptimizationsTab({ optimizations }: { readonly optimizations: Optimizations }): ReactNode {
  const { summary, running, queued = [], completed = [], idle_segments = [] } = optimizations;
  const spans = spansOf([...running, ...completed], Date.now());
  return (
    <>
      <div className="tiles">
        <Tile title="running">{count(running.length)}</Tile>
        <Tile title="queued optimizations">{count(summary.queued_optimizations)}</Tile>
        <Tile title="points in them">{count(summary.queued_points)}</Tile>
        <Tile title="segments at rest">{count(summary.idle_segments)}</Tile>
      </div>
      <section className="sheet" aria-label="Now">
        <h2>Now</h2>
        {running.length === 0 && queued.length === 0 && <p className="faint">Nothing is to be optimized.</p>}
        {running.map((optimization) => (
          <Running key={optimization.uuid} optimization={optimization} />
        ))}
        {queued.map((optimization, at) => (
          <p key={`${optimization.optimizer} ${optimization.segments[0]?.uuid ?? at}`}>
            <State tone="wait">{`${optimization.optimizer}, queued`}</State>
            <span className="small faint">{` ${optimization.segments.length} segments, ${count(pointsOf(optimization))} points`}</span>
          </p>
        ))}
      </section>
      <section className="sheet" aria-label="Timeline">
        <h2>Timeline</h2>
        {spans.length === 0 ? <p className="faint">No optimization has run since this node started.</p> : <Timeline spans={spans} />}
      </section>
      {idle_segments !== null && idle_segments.length > 0 && (
        <section className="sheet scroll" aria-label="Segments at rest">
          <h2>Segments at rest</h2>
          <table>
            <tbody>
              {idle_segments.map(({ uuid, points_count }) => (
                <tr key={uuid}>
                  <td className="mono">{uuid}</td>
                  <td className="number">{`${count(points_count)} points`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

function Running({ optimization }: { readonly optimization: Optimization }): ReactNode {
  const { optimizer, progress, segments } = optimization;
  const share = progress === undefined ? null : shareDone(progress);
  return (
    <div style={{ marginBottom: '0.8rem' }}>
      <div className="row">
        <State tone="busy">{optimizer}</State>
        <span className="small faint">{`${segments.length} segments, ${count(pointsOf(optimization))} points`}</span>
        <span className="grow" />
        {share !== null && <span className="small">{percent(share, 1)}</span>}
      </div>
      {share !== null && <Bar share={share} label={`Progress of ${optimizer}`} />}
      {progress !== undefined && <Steps progress={progress} />}
    </div>
  );
}

function Steps({ progress }: { readonly progress: OptimizationProgress }): ReactNode {
  if (progress.children === undefined || progress.children.length === 0) return null;
  return (
    <ul className="tree">
      {progress.children.map((step) => (
        <li key={step.name} className="small">
          {step.name}
          {step.total ? ` ${count(step.done ?? 0)} of ${count(step.total)}` : ''}
          {step.duration_sec ? <span className="faint">{` ${seconds(step.duration_sec)}`}</span> : null}
          <Steps progress={step} />
        </li>
      ))}
    </ul>
  );
}

function Timeline({ spans }: { readonly spans: readonly Span[] }): ReactNode {
  const begin = Math.min(...spans.map(({ beginMs }) => beginMs));
  const whole = Math.max(1, Math.max(...spans.map(({ endMs }) => endMs)) - begin);
  return (
    <table>
      <tbody>
        {spans.map((span) => (
          <tr key={`${span.title} ${span.beginMs} ${span.detail}`}>
            <td>
              <State tone={TONES[span.outcome]}>{span.title}</State>
              <div className="small faint">{span.detail}</div>
            </td>
            <td className="small short">{`${moment(new Date(span.beginMs).toISOString())} UTC`}</td>
            <td style={{ width: '55%' }}>
              <div className="lane">
                <i
                  style={{ left: `${(100 * (span.beginMs - begin)) / whole}%`, width: `${(100 * (span.endMs - span.beginMs)) / whole}%` }}
                />
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function pointsOf({ segments }: Pick<Optimization, 'segments'>): number {
  return segments.reduce((sum, { points_count }) => sum + points_count, 0);
}
