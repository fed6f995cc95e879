/** How the node fares: figures of `/metrics` over the last minutes. */

import { type ReactNode, useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { ApiError, send } from '../base/api.js';
import { useLive } from '../base/live.js';
import { bytes, digits, seconds } from '../model/format.js';
import { parseMetrics, rate, type Sample, sumOf } from '../model/metrics.js';
import { Failure, Loading } from '../parts/basics.js';

const PERIOD_MS = 2000;
/** Five minutes. */
const KEPT = 150;

interface Reading {
  readonly atSec: number;
  readonly requests: number;
  readonly failures: number;
  readonly durationSec: number;
  readonly memoryBytes: number;
  readonly points: number;
}

interface Chart {
  readonly title: string;
  /** Of one reading and the one before. */
  readonly value: (before: Reading, now: Reading) => number;
  readonly shown: (value: number) => string;
}

const CHARTS: readonly Chart[] = [
  { title: 'Requests a second', value: (before, now) => rate(before.requests, now.requests, now.atSec - before.atSec), shown: digits },
  {
    title: 'Average time of a request',
    value: (before, now) =>
      now.requests > before.requests ? (now.durationSec - before.durationSec) / (now.requests - before.requests) : 0,
    shown: seconds,
  },
  {
    title: 'Refused or failed a second',
    value: (before, now) => rate(before.failures, now.failures, now.atSec - before.atSec),
    shown: digits,
  },
  { title: 'Resident memory', value: (_, now) => now.memoryBytes, shown: bytes },
  { title: 'Points', value: (_, now) => now.points, shown: digits },
];

export function MetricsPage(): ReactNode {
  const [readings, setReadings] = useState<readonly Reading[]>([]);
  const { error } = useLive(
    'metrics',
    async (signal) => {
      const { status, text } = await send('GET', '/metrics', undefined, signal);
      if (status >= 400) throw new ApiError(status, text);
      const reading = readingOf(parseMetrics(text), Date.now() / 1000);
      setReadings((before) => [...before, reading].slice(-KEPT));
    },
    { periodMs: PERIOD_MS },
  );
  return (
    <>
      <div className="head">
        <h1>Metrics</h1>
        <span className="faint">the last five minutes, as long as this page is open</span>
        <span className="grow" />
        <a className="button" href="/metrics">
          For Prometheus
        </a>
      </div>
      <Failure error={error} />
      {readings.length < 2 ? (
        <Loading />
      ) : (
        <div className="charts">
          {CHARTS.map((chart) => (
            <ChartView key={chart.title} chart={chart} readings={readings} />
          ))}
        </div>
      )}
    </>
  );
}

function readingOf(samples: readonly Sample[], atSec: number): Reading {
  const isFailure = ({ status = '' }: Sample['labels']): boolean => /^[45]/.test(status);
  return {
    atSec,
    requests: sumOf(samples, 'rest_responses_total') + sumOf(samples, 'grpc_responses_total'),
    failures: sumOf(samples, 'rest_responses_total', isFailure),
    durationSec: sumOf(samples, 'rest_responses_duration_seconds_sum') + sumOf(samples, 'grpc_responses_duration_seconds_sum'),
    memoryBytes: sumOf(samples, 'memory_resident_bytes'),
    points: sumOf(samples, 'collection_points'),
  };
}

/** Five minutes, in seconds. */
function spanUntil(endSec: number): [number, number] {
  return [endSec - (KEPT * PERIOD_MS) / 1000, endSec];
}

function ChartView({ chart, readings }: { readonly chart: Chart; readonly readings: readonly Reading[] }): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const times = readings.slice(1).map(({ atSec }) => atSec);
  const values = readings.slice(1).map((now, at) => chart.value(readings[at] as Reading, now));
  const last = values.at(-1) ?? 0;
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const style = getComputedStyle(element);
    const ink = style.getPropertyValue('color');
    const axis = { stroke: ink, grid: { stroke: '#8884', width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 170,
        legend: { show: false },
        cursor: { show: false },
        // A chart begins at its right end, and fills as the page stays open.
        scales: {
          x: { range: (_, __, max) => spanUntil(max ?? Date.now() / 1000) },
          y: { range: (_, __, max) => [0, max === 0 ? 1 : max * 1.1] },
        },
        axes: [
          { ...axis, values: (_, marks) => marks.map((mark) => new Date(mark * 1000).toTimeString().slice(0, 5)) },
          { ...axis, size: 70, values: (_, marks) => marks.map(chart.shown) },
        ],
        series: [{}, { stroke: '#4263eb', width: 2, fill: '#4263eb22' }],
      },
      [[], []],
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 170 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [chart]);
  useEffect(() => plot.current?.setData([times, values]));
  return (
    <section className="sheet" aria-label={chart.title}>
      <div className="row">
        <h2 className="grow">{chart.title}</h2>
        <b>{chart.shown(last)}</b>
      </div>
      <div ref={box} />
    </section>
  );
}
