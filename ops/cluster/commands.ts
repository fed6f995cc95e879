/** What is typed at a local cluster, as commands. */

export type ScriptCommand =
  | { readonly kind: 'stop' | 'kill' | 'start' | 'pause' | 'resume'; readonly node: number }
  | { readonly kind: 'remove'; readonly node: number; readonly force: boolean }
  | { readonly kind: 'add' | 'heal' | 'status' | 'help' | 'quit' | 'nothing' }
  /** Only nodes of the same group reach each other. */
  | { readonly kind: 'partition'; readonly groups: readonly (readonly number[])[] }
  | { readonly kind: 'cut'; readonly source: number; readonly target: number }
  | { readonly kind: 'wrong'; readonly message: string };

export const COMMANDS = `  stop N          end node N in order (SIGTERM)
  kill N          end node N at once (SIGKILL)
  start N         start node N again; one that was removed joins anew
  pause N         let node N stand still (SIGSTOP); resume N lets it go on
  add             start a further node, which joins
  remove N        take peer N out of the cluster and end it; remove N force: though it holds shards
  partition 1 2 | 3   cut the network: only nodes of one group reach each other; partition 3: node 3 from all others
  cut 1 2         nothing that node 1 sends reaches node 2; the other way stays
  heal            undo partition and cut
  status          say again how each node is
  quit            end all (or Ctrl-C)`;

const ON_A_NODE = ['stop', 'kill', 'start', 'pause', 'resume', 'remove'] as const;
const ALONE = ['add', 'heal', 'status', 'help', 'quit'] as const;

/** nodes: numbers there are. */
export function parseClusterCommand(line: string, nodes: readonly number[]): ScriptCommand {
  const [name = '', ...rest] = line.trim().split(/\s+/);
  if (name === '') return { kind: 'nothing' };
  const alone = ALONE.find((known) => known === name);
  if (alone !== undefined) return rest.length === 0 ? { kind: alone } : wrong(`\`${name}\` takes nothing more`);
  if (name === 'partition') return partition(rest, nodes);
  if (name === 'cut') {
    const [source, target] = rest.map((word) => numberIn(word, nodes));
    if (rest.length !== 2 || source === undefined || target === undefined || source === target)
      return wrong(`\`cut\` takes two of the nodes ${nodes.join(', ')}`);
    return { kind: 'cut', source, target };
  }
  const onNode = ON_A_NODE.find((known) => known === name);
  if (onNode === undefined) return wrong(`unknown command \`${name}\`; \`help\` lists all`);
  const node = numberIn(rest[0], nodes);
  const words = rest.length - (onNode === 'remove' && rest[1] === 'force' ? 1 : 0);
  if (node === undefined || words !== 1) return wrong(`\`${name}\` takes one of the nodes ${nodes.join(', ')}`);
  return onNode === 'remove' ? { kind: 'remove', node, force: rest[1] === 'force' } : { kind: onNode, node };
}

function partition(words: readonly string[], nodes: readonly number[]): ScriptCommand {
  const groups: number[][] = [[]];
  for (const word of words
    .join(' ')
    .replaceAll('|', ' | ')
    .split(/[\s,]+/)) {
    const node = numberIn(word, nodes);
    if (word === '') continue;
    else if (word === '|') groups.push([]);
    else if (node === undefined) return wrong(`there is no node \`${word}\`; there are ${nodes.join(', ')}`);
    else if (groups.some((group) => group.includes(node))) return wrong(`node ${node} is named twice`);
    else groups.at(-1)?.push(node);
  }
  const named = groups.filter((group) => group.length > 0);
  if (named.length === 0) return wrong('`partition` takes groups of nodes, such as `partition 1 2 | 3`');
  const rest = nodes.filter((node) => !groups.some((group) => group.includes(node)));
  return { kind: 'partition', groups: rest.length === 0 ? named : [...named, rest] };
}

function numberIn(word: string | undefined, nodes: readonly number[]): number | undefined {
  const number = Number(word);
  return nodes.includes(number) ? number : undefined;
}

function wrong(message: string): ScriptCommand {
  return { kind: 'wrong', message };
}
