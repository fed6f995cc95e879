/** The benchmark's results as text: tables for people, kept in the README between markers. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Memory } from '../common/measure.js';
import { table, whole } from '../common/table.js';
import type { Report } from './run.js';

/** A chapter of Markdown with everything that was measured on one data set. */
export function markdown(report: Report): string {
  const { machine } = report;
  return [
    `### ${report.description}`,
    '',
    `${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}; ${report.date}; seed ${report.seed}; \`${report.command}\``,
    '',
    ...table(['what', 'Troupe', 'usearch in one process (f32)'], nodeRows(report)),
    '',
    'Searches, 10 nearest. CPU is that of the whole node; «usearch» is its CPU per query at the same recall.',
    '',
    ...table(
      ['over', 'filter', 'ef', 'connections', 'recall@10', 'queries/s', 'CPU ms', 'usearch CPU ms', 'ratio', 'p50 ms', 'p95 ms', 'p99 ms'],
      report.searches.map(searchRow),
    ),
    '',
    'usearch, called in its own process, one thread:',
    '',
    ...table(['ef', 'recall@10', 'queries/s', 'CPU ms', 'p50 ms', 'p99 ms'], report.baseline.searches.map(baselineRow)),
    '',
  ].join('\n');
}

/** Puts a chapter between its markers in the README; a new one goes to the end. */
export function writeChapter(file: string, name: string, text: string): void {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const chapter = `${begin}\n${text}\n${end}`;
  const from = before.indexOf(begin);
  const to = before.indexOf(end);
  const next =
    from < 0 || to < from ? `${before.trimEnd()}\n\n${chapter}\n` : before.slice(0, from) + chapter + before.slice(to + end.length);
  writeFileSync(file, next);
}

function nodeRows({ baseline, upload, build, duringBuild, restart, ...report }: Report): string[][] {
  return [
    ['upload, `wait=true`, batches of 256, points/s', whole(upload.pointsPerSecond), ''],
    ['first point sent until indexed, s', one(upload.secondsUntilIndexed), ''],
    ['upload and index, CPU s', one(upload.cpuSeconds), ''],
    ['building the index in one go, s', one(build.seconds), one(baseline.build.seconds)],
    [
      'building the index in one go, CPU s',
      `${one(build.cpuSeconds)}${ratioText(build.cpuSeconds, baseline.build.cpuSeconds)}`,
      one(baseline.build.cpuSeconds),
    ],
    ['raw vectors, MB', whole(report.rawMegabytes), ''],
    ['memory after indexing, MB', memoryText(report.memoryIndexed), ''],
    ['memory after the searches, MB', memoryText(report.memorySearched), ''],
    ['memory after a restart and 1,000 searches, MB', memoryText(restart.memory), ''],
    ['disk, MB', whole(report.diskMegabytes), ''],
    ['start with the data in place: ready, ms', whole(restart.readyMs), ''],
    ['start with the data in place: first answer, ms', whole(restart.firstAnswerMs), ''],
    [
      `p99 at ef ${duringBuild.ef}, ${duringBuild.connections} connections, idle, ms`,
      `${two(duringBuild.idle.p99)} (p50 ${two(duringBuild.idle.p50)})`,
      '',
    ],
    [
      'the same while another index is built, ms',
      `${two(duringBuild.building.p99)} (p50 ${two(duringBuild.building.p50)})${ratioText(duringBuild.building.p99, duringBuild.idle.p99)}`,
      '',
    ],
  ];
}

function searchRow(search: Report['searches'][number]): string[] {
  return [
    search.protocol === 'rest' ? 'REST' : 'gRPC',
    search.filter === 'none' ? 'none' : `${search.filter} (${search.matching})`,
    String(search.ef),
    String(search.connections),
    search.recall.toFixed(4),
    whole(search.queriesPerSecond),
    three(search.cpuMsPerQuery),
    three(search.baselineCpuMs),
    search.baselineCpuMs === null || search.cpuMsPerQuery === null ? '' : two(search.cpuMsPerQuery / search.baselineCpuMs),
    two(search.p50),
    two(search.p95),
    two(search.p99),
  ];
}

function baselineRow(search: Report['baseline']['searches'][number]): string[] {
  return [
    String(search.ef),
    search.recall.toFixed(4),
    whole(search.queriesPerSecond),
    three(search.cpuMsPerQuery),
    two(search.p50),
    two(search.p99),
  ];
}

function memoryText(memory: Memory | null): string {
  if (memory === null) return '';
  return `${whole(memory.rss)} (anonymous ${whole(memory.anonymous)}, shared ${whole(memory.shared)}, files ${whole(memory.file)})`;
}

function ratioText(value: number | null, base: number): string {
  return value === null ? '' : ` (× ${two(value / base)})`;
}

function one(value: number | null): string {
  return value === null ? '' : value.toFixed(1);
}

function two(value: number): string {
  return value.toFixed(2);
}

function three(value: number | null): string {
  return value === null ? '' : value.toFixed(3);
}
