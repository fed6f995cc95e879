/** The dashboard and the alert rules ask for figures and labels that a node has. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { freePorts } from '../../ops/ports.js';
import { nodeFor, temporaryFolder } from '../process/support.js';

const FOLDER = fileURLToPath(new URL('../../../ops/grafana', import.meta.url));

interface Dashboard {
  readonly panels: readonly { readonly id: number; readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string; readonly labels: object; readonly annotations: object }[];
  }[];
}

/** Words of PromQL. */
const LANGUAGE = new Set('sum min max count topk by and or rate increase delta histogram_quantile'.split(' '));
/** What Prometheus itself adds. */
const OF_PROMETHEUS = { families: ['up'], labels: ['instance', 'job', 'le'] };

/** Names of figures, and of labels, in an expression. */
function namesIn(expression: string): { families: string[]; labels: string[] } {
  const plain = expression.replace(/"[^"]*"/g, '""').replace(/\[[^\]]*\]/g, '');
  const labels = [...plain.matchAll(/\{([^}]*)\}|\bby \(([^)]*)\)/g)].flatMap(([, inside = '', by = '']) => [
    ...[...inside.matchAll(/(\w+)(?:=~|!=|=)/g)].map(([, label = '']) => label),
    ...by.split(',').map((label) => label.trim()),
  ]);
  const rest = plain.replace(/\{[^}]*\}|\bby \([^)]*\)/g, ' ');
  const families = [...rest.matchAll(/\b[a-z_][a-z0-9_]*\b/g)].map(([name]) => name).filter((name) => !LANGUAGE.has(name));
  return { families, labels: labels.filter((label) => label !== '') };
}

test('every figure and label of the dashboard and of the alerts is one that a node of a cluster tells', async (t) => {
  const dashboard = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as Dashboard;
  const rules = (parse(readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8')) as Rules).groups.flatMap((group) => group.rules);
  const [peers] = await freePorts(1);
  const node = await nodeFor(t, {
    folder: await temporaryFolder(t),
    environment: {
      SERVICE__CLUSTER__ENABLED: 'true',
      SERVICE__CLUSTER__P2P__PORT: String(peers),
      SERVICE_URI: `http://127.0.0.1:${peers}`,
    },
  });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 1, distance: 'Dot' } });
  const { text } = await node.client.call('GET', '/metrics');
  const families = new Set([
    ...OF_PROMETHEUS.families,
    ...[...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = '', type]) => (type === 'histogram' ? [`${name}_bucket`] : [name])),
  ]);
  const labels = new Set([...OF_PROMETHEUS.labels, 'peer', ...[...text.matchAll(/[{,](\w+)="/g)].map(([, label = '']) => label)]);

  const expressions = [...dashboard.panels.flatMap(({ targets }) => targets ?? []), ...rules].map(({ expr }) => expr);
  assert.ok(expressions.length > 40);
  for (const expression of expressions) {
    const names = namesIn(expression);
    assert.ok(names.families.length > 0, expression);
    assert.deepEqual(
      names.families.filter((name) => !families.has(name)),
      [],
      expression,
    );
    assert.deepEqual(
      names.labels.filter((name) => !labels.has(name)),
      [],
      expression,
    );
    for (const [open, close] of ['()', '{}', '[]']) {
      assert.equal(expression.split(open as string).length, expression.split(close as string).length, expression);
    }
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, annotations, labels: own } of rules) {
    assert.ok('severity' in own && 'summary' in annotations && 'description' in annotations, alert);
  }
});
