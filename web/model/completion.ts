/** What may come next where somebody writes a request: paths of operations, names of fields. By the node's OpenAPI document. */

export interface ApiSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, ApiSchema>>;
  readonly items?: ApiSchema;
  readonly anyOf?: readonly ApiSchema[];
  readonly oneOf?: readonly ApiSchema[];
  readonly allOf?: readonly ApiSchema[];
  readonly additionalProperties?: ApiSchema | boolean;
  readonly enum?: readonly unknown[];
}

export interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly summary?: string;
            readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: ApiSchema }>> };
          }
        >
      >
    >
  >;
  readonly components?: { readonly schemas?: Readonly<Record<string, ApiSchema>> };
}

export interface Completion {
  /** Replaces the text from `start` to the cursor. */
  readonly start: number;
  readonly choices: readonly { readonly text: string; readonly note: string }[];
}

const CHOICES_MAX = 12;

/** collections: their names, put into paths. null: nothing to propose. */
export function completionAt(text: string, cursor: number, api: OpenApi, collections: readonly string[]): Completion | null {
  const lineEnd = text.indexOf('\n');
  if (lineEnd === -1 || cursor <= lineEnd) return pathCompletion(text, cursor, api, collections);
  return fieldCompletion(text, cursor, lineEnd, api);
}

function pathCompletion(text: string, cursor: number, api: OpenApi, collections: readonly string[]): Completion | null {
  const written = /^([A-Z]*)( +(\S*))?$/.exec(text.slice(0, cursor));
  if (written === null) return null;
  const [, method = '', , path] = written;
  const operations = Object.entries(api.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([name, { summary = '' }]) => ({ method: name.toUpperCase(), template, summary })),
  );
  if (path === undefined) {
    const methods = [...new Set(operations.map((operation) => operation.method))].filter(
      (name) => name.startsWith(method) && name !== method,
    );
    return methods.length === 0 ? null : { start: 0, choices: methods.map((name) => ({ text: `${name} /`, note: '' })) };
  }
  const names = collections.length === 0 ? ['{collection_name}'] : collections;
  const choices = operations
    .filter((operation) => operation.method === method)
    .flatMap(({ template, summary }) => {
      const known = template.includes('{collection_name}') ? names : [''];
      return known.map((name) => ({ text: template.replace('{collection_name}', name), note: summary }));
    })
    .filter((choice) => choice.text.startsWith(path) && choice.text !== path)
    .sort((one, other) => one.text.length - other.text.length || (one.text < other.text ? -1 : 1));
  return choices.length === 0 ? null : { start: cursor - path.length, choices: choices.slice(0, CHOICES_MAX) };
}

function fieldCompletion(text: string, cursor: number, lineEnd: number, api: OpenApi): Completion | null {
  const [method = '', path = ''] = text.slice(0, lineEnd).trim().split(/\s+/);
  const schema = bodySchema(api, method, path.split('?')[0] as string);
  if (schema === null) return null;
  const place = placeOf(text.slice(lineEnd + 1, cursor));
  if (place === null) return null;
  const fields = new Map<string, ApiSchema>();
  for (const found of descend(api, schema, place.path)) collectFields(api, found, fields, 0);
  const choices = [...fields]
    .filter(([name]) => name.startsWith(place.written) && name !== place.written)
    .map(([name, field]) => ({ text: `${name}": `, note: kindOf(api, field) }));
  return choices.length === 0 ? null : { start: cursor - place.written.length, choices: choices.slice(0, CHOICES_MAX) };
}

function bodySchema(api: OpenApi, method: string, path: string): ApiSchema | null {
  for (const [template, methods] of Object.entries(api.paths)) {
    const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`);
    const operation = methods[method.toLowerCase()];
    if (operation === undefined || !pattern.test(path)) continue;
    return Object.values(operation.requestBody?.content ?? {})[0]?.schema ?? null;
  }
  return null;
}

/** Where in a body the cursor is: the fields above it, and how much of a name is written. null: not within the name of a field. */
function placeOf(body: string): { readonly path: readonly string[]; readonly written: string } | null {
  const path: { readonly list: boolean; field: string }[] = [];
  let at = 0;
  let name: string | null = null;
  let expectsName = false;
  while (at < body.length) {
    const letter = body[at] as string;
    if (letter === '"') {
      const end = endOfText(body, at);
      if (end === -1)
        return expectsName
          ? { path: path.map(({ list, field }) => (list ? '[]' : field)).slice(0, -1), written: body.slice(at + 1) }
          : null;
      if (expectsName) name = body.slice(at + 1, end);
      at = end + 1;
      continue;
    }
    const top = path.at(-1);
    if (letter === '{' || letter === '[') {
      path.push({ list: letter === '[', field: '' });
      expectsName = letter === '{';
    } else if (letter === '}' || letter === ']') {
      path.pop();
      expectsName = false;
    } else if (letter === ':' && top !== undefined && name !== null) {
      top.field = name;
      name = null;
      expectsName = false;
    } else if (letter === ',') expectsName = top !== undefined && !top.list;
    at++;
  }
  return null;
}

function endOfText(body: string, start: number): number {
  for (let at = start + 1; at < body.length; at++) {
    if (body[at] === '\\') at++;
    else if (body[at] === '"') return at;
  }
  return -1;
}

/** All schemas that may be meant at the end of the path. */
function descend(api: OpenApi, schema: ApiSchema, path: readonly string[]): ApiSchema[] {
  let found = [schema];
  for (const step of path) {
    found = found
      .flatMap((one) => variantsOf(api, one, 0))
      .flatMap((one) => {
        if (step === '[]') return one.items === undefined ? [] : [one.items];
        const field = one.properties?.[step];
        if (field !== undefined) return [field];
        return typeof one.additionalProperties === 'object' ? [one.additionalProperties] : [];
      });
  }
  return found;
}

function variantsOf(api: OpenApi, schema: ApiSchema, depth: number): ApiSchema[] {
  if (depth > 8) return [];
  const { $ref } = schema;
  if ($ref !== undefined) {
    const named = api.components?.schemas?.[$ref.split('/').at(-1) as string];
    return named === undefined ? [] : variantsOf(api, named, depth + 1);
  }
  const within = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  return [schema, ...within.flatMap((one) => variantsOf(api, one, depth + 1))];
}

function collectFields(api: OpenApi, schema: ApiSchema, fields: Map<string, ApiSchema>, depth: number): void {
  for (const variant of variantsOf(api, schema, depth)) {
    for (const [name, field] of Object.entries(variant.properties ?? {})) if (!fields.has(name)) fields.set(name, field);
  }
}

function kindOf(api: OpenApi, schema: ApiSchema): string {
  const kinds = variantsOf(api, schema, 0).flatMap((one) =>
    one.enum === undefined ? (one.type ?? []) : one.enum.map((word) => JSON.stringify(word)),
  );
  return [...new Set(kinds)].slice(0, 4).join(' | ');
}
