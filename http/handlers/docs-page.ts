/** The page that shows the API: one HTML text without outside resources, which reads `/openapi.json` and lets operations be tried. */

import { crypto } from '../../protocols/late-modules.js';
import { escapeHtml } from '../context/html-text.js';

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#ccd3da, #3a434c); --soft: light-dark(#f3f5f7, #20262c); --accent: light-dark(#0b5fa5, #7cc0ff); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; background: Canvas; color: CanvasText; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
input[type=search] { width: 100%; box-sizing: border-box; padding: .5rem; font: inherit; }
details.operation { border: 1px solid var(--line); border-radius: 6px; margin: .3rem 0; }
details.operation > summary { padding: .4rem .6rem; cursor: pointer; display: flex; gap: .7rem; align-items: baseline; flex-wrap: wrap; }
details.operation > div { padding: 0 .8rem .8rem; }
.method { font: 600 .8rem ui-monospace, monospace; color: var(--accent); min-width: 3.6rem; }
.path, code, pre, textarea, label input { font: .85rem ui-monospace, monospace; }
.summary { opacity: .8; }
pre, textarea { background: var(--soft); border: 1px solid var(--line); border-radius: 4px; padding: .6rem; overflow: auto; max-height: 28rem; }
textarea { width: 100%; box-sizing: border-box; min-height: 9rem; color: inherit; }
ul.schema { list-style: none; margin: .1rem 0; padding-left: 1rem; border-left: 1px solid var(--line); }
.type { color: var(--accent); } .note { opacity: .75; }
[role=alert] { border: 2px solid light-dark(#b3261e, #ff8a80); border-radius: 6px; padding: .6rem .8rem; font-weight: 600; }
label { display: block; margin: .2rem 0; } button { font: inherit; padding: .3rem .9rem; margin: .4rem 0; }
`;

// Every text of the document goes into the page as a text node, never as HTML.
const SCRIPT = `
'use strict';
const main = document.querySelector('main');
let api;

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function resolved(schema) {
  let name = null;
  while (schema && schema.$ref) {
    name = schema.$ref.split('/').pop();
    schema = api.components.schemas[name];
  }
  return { name, schema: schema || {} };
}

function typeName(schema) {
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(' | ');
  if (schema.anyOf) return schema.anyOf.map(typeName).join(' | ');
  if (schema.type === 'array') return 'list of ' + typeName(schema.items || {});
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object') return 'map of ' + typeName(schema.additionalProperties);
  return schema.type || 'any';
}

function bounds(schema) {
  const parts = [];
  if (schema.minimum !== undefined) parts.push('from ' + schema.minimum);
  if (schema.maximum !== undefined) parts.push('to ' + schema.maximum);
  if (schema.minItems !== undefined) parts.push('at least ' + schema.minItems);
  if (schema.default !== undefined) parts.push('default ' + JSON.stringify(schema.default));
  return parts.length ? ' (' + parts.join(', ') + ')' : '';
}

function schemaView(given) {
  const { schema } = resolved(given);
  const box = element('div', '');
  // A field's own description stands in its line.
  if (schema.description && schema !== given) box.append(element('div', 'note', schema.description));
  if (schema.anyOf) {
    const choices = element('ul', 'schema');
    for (const choice of schema.anyOf) choices.append(element('li', '', schemaLine('', choice, false)));
    box.append(element('div', 'note', 'one of'), choices);
  }
  if (schema.properties) {
    const list = element('ul', 'schema');
    for (const [name, field] of Object.entries(schema.properties)) {
      list.append(element('li', '', schemaLine(name, field, (schema.required || []).includes(name))));
    }
    box.append(list);
  }
  if (schema.items) box.append(schemaLine('items', schema.items, false));
  if (typeof schema.additionalProperties === 'object') box.append(schemaLine('values', schema.additionalProperties, false));
  return box;
}

function schemaLine(name, given, required) {
  const { schema } = resolved(given);
  const label = [element('code', '', name + (required ? ' *' : '')), ' ', element('span', 'type', typeName(given) + bounds(schema))];
  if (given.description) label.push(element('span', 'note', ' ' + given.description));
  const inner = schema.properties || schema.anyOf || schema.items || typeof schema.additionalProperties === 'object';
  if (!inner) return element('div', '', ...label, schema.description && schema !== given ? element('span', 'note', ' ' + schema.description) : '');
  const details = element('details', '', element('summary', '', ...label));
  // Schemas refer to themselves: what is inside is made when it is asked for.
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(schemaView(given));
  });
  return details;
}

function tryForm(method, path, operation, content) {
  const inputs = [];
  const form = element('form', '');
  for (const parameter of operation.parameters) {
    const input = element('input', '');
    input.name = parameter.name;
    input.required = parameter.required;
    input.value = parameter.example || '';
    inputs.push([parameter, input]);
    form.append(element('label', '', parameter.name + (parameter.required ? ' * ' : ' '), input, element('span', 'note', ' ' + (parameter.description || ''))));
  }
  const area = element('textarea', '');
  if (content) {
    area.value = JSON.stringify(content.example, null, 2);
    form.append(area);
  }
  const answer = element('pre', '');
  answer.hidden = true;
  form.append(element('button', '', 'Send'), answer);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    let url = path;
    const query = new URLSearchParams();
    for (const [parameter, input] of inputs) {
      if (parameter.in === 'path') url = url.replace('{' + parameter.name + '}', encodeURIComponent(input.value));
      else if (input.value !== '') query.set(parameter.name, input.value);
    }
    if ([...query].length) url += '?' + query;
    answer.hidden = false;
    answer.textContent = '…';
    try {
      const response = await fetch(url, { method, ...(content ? { body: area.value, headers: { 'content-type': 'application/json' } } : {}) });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch {}
      answer.textContent = response.status + ' ' + response.statusText + '\\n' + shown;
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  return form;
}

function operationView(method, path, operation) {
  const details = element('details', 'operation',
    element('summary', '', element('span', 'method', method), element('span', 'path', path), element('span', 'summary', operation.summary)));
  details.id = operation.operationId;
  details.dataset.words = (method + ' ' + path + ' ' + operation.summary + ' ' + operation.operationId).toLowerCase();
  details.addEventListener('toggle', () => {
    // The address of an operation can be copied once it is open.
    if (details.open) history.replaceState(null, '', '#' + details.id);
    if (!details.open || details.children.length > 1) return;
    const content = operation.requestBody && operation.requestBody.content['application/json'];
    const body = content && content.schema;
    const form = operation.requestBody && operation.requestBody.content['multipart/form-data']?.schema;
    const answers = operation.responses['200'].content;
    const inner = element('div', '');
    if (body || form) inner.append(element('h3', '', body ? 'Body' : 'Body (multipart/form-data)'), schemaView(body || form));
    inner.append(element('h3', '', 'Answer'), schemaView(Object.values(answers)[0].schema));
    if (!form && !answers['application/octet-stream']) inner.append(element('h3', '', 'Try it'), tryForm(method, path, operation, content));
    details.append(inner);
  });
  return details;
}

function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (!named || !named.classList.contains('operation')) return;
  named.open = true;
  named.scrollIntoView();
}

async function show() {
  api = await (await fetch('/openapi.json')).json();
  document.querySelector('h1').textContent = api.info.title + ' ' + api.info.version;
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0];
      if (!groups.has(tag)) groups.set(tag, element('section', '', element('h2', '', tag)));
      groups.get(tag).append(operationView(method.toUpperCase(), path, operation));
    }
  }
  main.replaceChildren(...groups.values());
  openNamed();
  addEventListener('hashchange', openNamed);
  document.querySelector('input[type=search]').addEventListener('input', (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const view of main.querySelectorAll('details.operation')) view.hidden = !view.dataset.words.includes(wanted);
  });
}

show().catch((error) => main.replaceChildren(String(error)));
`;

/** Scripts and styles of this page alone, and requests to this node alone. */
export function docsPolicy(): string {
  return [
    "default-src 'none'",
    `script-src '${hashOf(SCRIPT)}'`,
    `style-src '${hashOf(STYLE)}'`,
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** warning: shown above everything; null: none. */
export function docsPage(warning: string | null): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Troupe API</title><style>${STYLE}</style></head>
<body>
${warning === null ? '' : `<p role="alert">${escapeHtml(warning)}</p>\n`}<h1>Troupe</h1>
<p>The machine-readable form is <a href="/openapi.json">openapi.json</a>. Fields with * must be given. Examples can be sent as they stand: first create the collection, then upsert its points.</p>
<input type="search" placeholder="Find an operation" aria-label="Find an operation">
<main>…</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${crypto().createHash('sha256').update(text).digest('base64')}`;
}
