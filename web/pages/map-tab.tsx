/** The points of a collection on a plane, coloured by a field of their payload. */

import { type PointerEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { ApiError, collectionPath, errorOf, headers } from '../base/api.js';
import type { CollectionInfo, Point } from '../model/api-types.js';
import { count } from '../model/format.js';
import { vectorNames } from '../model/vectors.js';
import { Failure } from '../parts/basics.js';
import { PayloadView } from '../parts/payload.js';
import type { PlaceNews, PlaceWish } from './projection-worker.js';

const COUNTS = [1000, 5000, 20_000, 50_000];
/** Apart in hue or lightness, on light and on dark ground; all other values share the last one. */
const COLOURS = ['#4c7dff', '#f28e2b', '#2f9e4f', '#e03a4e', '#14a3b8', '#a55bd6', '#b39b00', '#e377c2', '#9a6242', '#8a8f99'];
const NEAR_PIXELS = 12;

interface Placed {
  readonly points: readonly Point[];
  /** [count, 2]. */
  readonly places: Float32Array;
}

export function MapTab({ name, info }: { readonly name: string; readonly info: CollectionInfo }): ReactNode {
  const names = vectorNames(info).filter(({ kind }) => kind === 'dense');
  const [using, setUsing] = useState(names[0]?.name ?? '');
  const [wanted, setWanted] = useState(1000);
  const [field, setField] = useState(Object.keys(info.payload_schema)[0] ?? '');
  const [progress, setProgress] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [placed, setPlaced] = useState<Placed | null>(null);
  const [picked, setPicked] = useState<Point | null>(null);
  const abort = useRef<AbortController>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const dim = names.find((vector) => vector.name === using)?.size ?? 0;
  const draw = async (): Promise<void> => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    setError(null);
    setPicked(null);
    try {
      const found = await place(name, { using, dim, wanted }, own.signal, setProgress);
      setPlaced(found);
      if (field === '') setField(Object.keys(found.points[0]?.payload ?? {})[0] ?? '');
    } catch (met) {
      if (!own.signal.aborted) setError(met);
    } finally {
      if (!own.signal.aborted) setProgress(null);
    }
  };
  const groups = useMemo(() => (placed === null ? null : groupsOf(placed.points, field)), [placed, field]);
  const fields = useMemo(() => fieldsOf(info, placed?.points ?? []), [info, placed]);
  if (names.length === 0) return <p>This collection has no vectors that can be shown as places.</p>;
  return (
    <>
      <div className="row" style={{ marginBottom: '1rem' }}>
        {names.length > 1 && (
          <label className="line">
            Vector
            <select value={using} onChange={(event) => setUsing(event.target.value)}>
              {names.map((vector) => (
                <option key={vector.name}>{vector.name}</option>
              ))}
            </select>
          </label>
        )}
        <label className="line">
          Points
          <select value={wanted} onChange={(event) => setWanted(Number(event.target.value))}>
            {COUNTS.map((number) => (
              <option key={number} value={number}>
                {count(number)}
              </option>
            ))}
          </select>
        </label>
        <label className="line">
          Colour by
          <select value={field} onChange={(event) => setField(event.target.value)}>
            {fields.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <button type="button" className="main-action" onClick={draw}>
          Draw
        </button>
        {progress !== null && (
          <span className="faint" role="status">
            {progress}
          </span>
        )}
      </div>
      <Failure error={error} />
      {placed === null && error === null && (
        <p className="faint">
          Vectors as places on a plane, each with the colour of a payload field: groups of points and those that stand alone can be seen.
        </p>
      )}
      {placed !== null && groups !== null && (
        <div className="sheet">
          <Plot placed={placed} groups={groups} onPick={setPicked} />
          <div className="legend">
            {groups.titles.map((title, at) => (
              <span key={title}>
                <i style={{ background: COLOURS[at] }} />
                {title}
              </span>
            ))}
          </div>
          <p className="small faint">
            {`${count(placed.points.length)} points. The plane has the two directions in which their vectors differ most: what is far apart here is far apart, what is near here need not be near.`}
          </p>
          {picked !== null && (
            <article className="sheet" aria-label={`Point ${picked.id}`}>
              <b className="mono">{String(picked.id)}</b>
              <PayloadView payload={picked.payload ?? {}} />
            </article>
          )}
        </div>
      )}
    </>
  );
}

interface Wish {
  readonly using: string;
  readonly dim: number;
  readonly wanted: number;
}

/** In a thread of its own, so that the page answers meanwhile. Throws `ApiError`. */
function place(name: string, wish: Wish, signal: AbortSignal, tell: (text: string) => void): Promise<Placed> {
  const worker = new Worker(new URL('./projection-worker.ts', import.meta.url), { type: 'module' });
  const points: Point[] = [];
  return new Promise<Placed>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<PlaceNews>) => {
      switch (data.kind) {
        case 'read':
          for (const point of data.points) points.push(point);
          tell(`${count(points.length)} points read`);
          return;
        case 'allRead':
          tell('Finding places …');
          return;
        case 'placed':
          resolve({ points, places: data.places });
          return;
        case 'refused':
          reject(new ApiError(data.status, errorOf(data.status, data.text)));
          return;
        default:
          data satisfies never;
      }
    };
    worker.onerror = ({ message }) => reject(new Error(message || 'The places could not be found.'));
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    const asked: PlaceWish = { ...wish, path: collectionPath(name, '/points/scroll'), headers: headers() };
    worker.postMessage(asked);
  }).finally(() => worker.terminate());
}

interface Groups {
  readonly titles: readonly string[];
  /** Of each point, the place of its title. */
  readonly of: Uint8Array;
}

function groupsOf(points: readonly Point[], field: string): Groups {
  const numbers = new Map<string, number>();
  const texts = points.map(({ payload }) => textOf(payload?.[field]));
  for (const text of texts) numbers.set(text, (numbers.get(text) ?? 0) + 1);
  const frequent = [...numbers].sort(([, one], [, other]) => other - one).map(([text]) => text);
  const isAll = frequent.length <= COLOURS.length;
  const titles = isAll
    ? frequent.sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
    : [...frequent.slice(0, COLOURS.length - 1), 'others'];
  const places = new Map(titles.map((title, at) => [title, at]));
  return { titles, of: Uint8Array.from(texts, (text) => places.get(text) ?? titles.length - 1) };
}

function fieldsOf(info: CollectionInfo, points: readonly Point[]): string[] {
  const fields = new Set(Object.keys(info.payload_schema));
  for (const { payload } of points.slice(0, 100)) for (const field of Object.keys(payload ?? {})) fields.add(field);
  return [...fields];
}

function textOf(value: unknown): string {
  return value === undefined || value === null ? 'none' : String(value).slice(0, 40);
}

interface PlotProps {
  readonly placed: Placed;
  readonly groups: Groups;
  readonly onPick: (point: Point | null) => void;
}

function Plot({ placed, groups, onPick }: PlotProps): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    const paint = (): void => paintPoints(element, placed.places, groups);
    const observer = new ResizeObserver(paint);
    observer.observe(element);
    return () => observer.disconnect();
  }, [placed, groups]);
  const pick = (event: PointerEvent<HTMLCanvasElement>): void => {
    const element = event.currentTarget;
    const box = element.getBoundingClientRect();
    const at = nearest(placed.places, box, event.clientX - box.left, event.clientY - box.top);
    onPick(at === -1 ? null : (placed.points[at] as Point));
  };
  return (
    <canvas
      ref={canvas}
      className="plot"
      role="img"
      aria-label={`${count(placed.points.length)} points on a plane`}
      onPointerMove={pick}
      onPointerDown={pick}
    />
  );
}

/** From a place within -1 to 1 to pixels. */
function scaled(value: number, pixels: number): number {
  return (0.5 + 0.47 * value) * pixels;
}

function paintPoints(canvas: HTMLCanvasElement, places: Float32Array, groups: Groups): void {
  const { clientWidth, clientHeight } = canvas;
  canvas.width = clientWidth * devicePixelRatio;
  canvas.height = clientHeight * devicePixelRatio;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.globalAlpha = places.length > 10_000 ? 0.55 : 0.8;
  const radius = places.length > 40_000 ? 1.5 : 2.5;
  // Colour by colour: changing it for each point takes most of the time.
  for (let group = 0; group < groups.titles.length; group++) {
    context.fillStyle = COLOURS[group] as string;
    context.beginPath();
    for (let at = 0; at < groups.of.length; at++) {
      if (groups.of[at] !== group) continue;
      const x = scaled(places[2 * at] as number, clientWidth);
      const y = scaled(places[2 * at + 1] as number, clientHeight);
      context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
    context.fill();
  }
}

function nearest(places: Float32Array, box: DOMRect, x: number, y: number): number {
  let found = -1;
  let least = NEAR_PIXELS * NEAR_PIXELS;
  for (let at = 0; 2 * at < places.length; at++) {
    const dx = scaled(places[2 * at] as number, box.width) - x;
    const dy = scaled(places[2 * at + 1] as number, box.height) - y;
    const distance = dx * dx + dy * dy;
    if (distance < least) {
      least = distance;
      found = at;
    }
  }
  return found;
}
