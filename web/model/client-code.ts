/** A request as text of the console, and as code to copy. The key is left out of all of them: it is read from a variable. */

export interface ConsoleRequest {
  readonly method: string;
  readonly path: string;
  /** Empty for none. */
  readonly body: string;
}

const METHODS = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'];

/** The first line is method and path, the rest the body. Gives what is wrong as a text. */
export function parseRequest(text: string): ConsoleRequest | string {
  const [line = '', ...rest] = text.replace(/^\s+/, '').split('\n');
  const [method = '', path = '', ...more] = line.trim().split(/\s+/);
  if (!METHODS.includes(method)) return `The first line begins with one of ${METHODS.join(', ')}.`;
  if (!path.startsWith('/')) return 'After the method comes a path, such as /collections.';
  if (more.length > 0) return 'The first line has a method and a path, and nothing else. The body begins on the next line.';
  const body = rest.join('\n').trim();
  if (body !== '') {
    try {
      JSON.parse(body);
    } catch (error) {
      return `The body is no JSON: ${(error as Error).message}`;
    }
  }
  return { method, path, body };
}

export function curlOf({ method, path, body }: ConsoleRequest, origin: string, withKey: boolean): string {
  const parts = [`curl -X ${method} ${quoted(`${origin}${path}`)}`];
  if (withKey) parts.push('  -H "api-key: $TROUPE_KEY"');
  if (body !== '') parts.push(`  -d ${quoted(body)}`);
  return parts.join(' \\\n');
}

export function javascriptOf({ method, path, body }: ConsoleRequest, origin: string, withKey: boolean): string {
  const options = [`method: '${method}'`];
  if (withKey) options.push("headers: { 'api-key': process.env.TROUPE_KEY }");
  if (body !== '') options.push(`body: JSON.stringify(${indented(body)})`);
  return `const response = await fetch(${JSON.stringify(`${origin}${path}`)}, {\n  ${options.join(',\n  ')},\n});\nconsole.log(await response.json());`;
}

export function pythonOf({ method, path, body }: ConsoleRequest, origin: string, withKey: boolean): string {
  const lines = ['import json, os, urllib.request', ''];
  if (body !== '') lines.push(`body = json.loads(r"""${body}""")`);
  lines.push(
    `request = urllib.request.Request(${JSON.stringify(`${origin}${path}`)}, method="${method}"${body === '' ? '' : ', data=json.dumps(body).encode()'})`,
  );
  if (withKey) lines.push('request.add_header("api-key", os.environ["TROUPE_KEY"])');
  lines.push('print(urllib.request.urlopen(request).read().decode())');
  return lines.join('\n');
}

/** For a shell of POSIX. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function indented(body: string): string {
  return body.split('\n').join('\n  ');
}
