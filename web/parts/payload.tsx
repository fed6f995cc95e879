/** What is in a point: payload, images and links in it, vectors as bars. */

import type { ReactNode } from 'react';
import type { Vector } from '../model/api-types.js';

const IMAGE = /\.(png|jpe?g|gif|webp|svg|avif)(\?.*)?$/i;
const IMAGE_DATA = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml);base64,/;
const LINK = /^https?:\/\//i;
const DEPTH_MAX = 6;
const TEXT_SHOWN = 400;
const DATA_SHOWN = 60;

export function PayloadView({ payload }: { readonly payload: Readonly<Record<string, unknown>> }): ReactNode {
  const entries = Object.entries(payload);
  if (entries.length === 0) return <span className="faint">no payload</span>;
  return (
    <dl className="payload" style={{ margin: 0 }}>
      {entries.map(([key, value]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>
            <Value value={value} depth={0} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value, depth }: { readonly value: unknown; readonly depth: number }): ReactNode {
  if (typeof value === 'string') return <TextValue text={value} />;
  if (value === null || typeof value !== 'object') return <code>{String(value)}</code>;
  if (depth >= DEPTH_MAX) return <code>{JSON.stringify(value)}</code>;
  if (Array.isArray(value)) {
    if (value.every((one) => typeof one !== 'object')) return <span>{value.map(String).join(', ')}</span>;
    return <code>{JSON.stringify(value)}</code>;
  }
  return <PayloadView payload={value as Readonly<Record<string, unknown>>} />;
}

/** Images are shown where they lie within the text or on this node; those of other hosts are links, as the page asks no other host. */
function TextValue({ text }: { readonly text: string }): ReactNode {
  if (IMAGE_DATA.test(text)) return <img src={text} alt="" />;
  if (LINK.test(text)) {
    if (IMAGE.test(text) && text.startsWith(`${location.origin}/`)) return <img src={text} alt={text} loading="lazy" />;
    return (
      <a href={text} target="_blank" rel="noreferrer noopener">
        {text}
      </a>
    );
  }
  // Data that is no image says nothing to people.
  const shown = text.startsWith('data:') ? DATA_SHOWN : TEXT_SHOWN;
  return <span>{text.length > shown ? `${text.slice(0, shown)} …` : text}</span>;
}

const BARS_MAX = 128;

/** A dense vector as bars; others in words. */
export function VectorBars({ vector, name }: { readonly vector: Vector; readonly name: string }): ReactNode {
  if (!Array.isArray(vector)) {
    const { indices } = vector as { readonly indices: readonly number[] };
    return <p className="small faint">{`${label(name)}sparse, ${indices.length} values`}</p>;
  }
  if (Array.isArray(vector[0])) return <p className="small faint">{`${label(name)}${vector.length} vectors of ${vector[0].length}`}</p>;
  const values = extremes(vector as readonly number[], BARS_MAX);
  const largest = values.reduce((found, value) => Math.max(found, Math.abs(value)), 1e-12);
  const width = 100 / values.length;
  return (
    <figure style={{ margin: '0.3rem 0' }}>
      <svg
        className="bars"
        viewBox="0 -50 100 100"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label(name)}${vector.length} numbers`}
      >
        {values.map((value, at) => {
          const height = (50 * Math.abs(value)) / largest;
          // biome-ignore lint/suspicious/noArrayIndexKey: places of a vector have no other name
          return <rect key={at} x={at * width} y={value < 0 ? 0 : -height} width={width * 0.8} height={height} fill="var(--accent)" />;
        })}
      </svg>
      <figcaption className="small faint">{`${label(name)}${vector.length} numbers`}</figcaption>
    </figure>
  );
}

/** The vector itself, or of each of `count` stretches of it the number that is farthest from 0. */
function extremes(vector: readonly number[], count: number): readonly number[] {
  if (vector.length <= count) return vector;
  return Array.from({ length: count }, (_, at) => {
    const stretch = vector.slice(Math.floor((at * vector.length) / count), Math.floor(((at + 1) * vector.length) / count));
    return stretch.reduce((found, value) => (Math.abs(value) > Math.abs(found) ? value : found), 0);
  });
}

function label(name: string): string {
  return name === '' ? '' : `${name}: `;
}
