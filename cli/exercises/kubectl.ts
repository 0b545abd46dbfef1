// What the commands of exercises need of kubectl, for machines that have none: the project's own client behind kubectl's words.
// It prints less and knows few kinds; what it does not know it refuses by name.

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { ApiClient } from '../../client/api.ts';
import { ApiError, isNotFound, isUnreachable } from '../../client/errors.ts';
import { execInPod } from '../../client/exec.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { readLogs } from '../../client/logs.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Event, Node, Pod, Service } from '../../client/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { poll } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import { evaluateJsonPath } from './json-path.ts';
import {
  type Listed,
  labelsText,
  NO_COLUMNS,
  NODE_COLUMNS,
  POD_COLUMNS,
  SERVICE_COLUMNS,
  tableOf,
} from './object-table.ts';

/** For giving up only: as long as kubectl's own. ms */
const DELETE_MS = 120_000;
const LOOK_MS = 200;

interface Kind {
  readonly kind: string;
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const core = (kind: string, plural: string, namespaced = true): Kind => ({
  kind,
  apiVersion: 'v1',
  plural,
  namespaced,
});
const KINDS: readonly Kind[] = [
  core('Pod', 'pods'),
  core('Service', 'services'),
  core('ConfigMap', 'configmaps'),
  core('Secret', 'secrets'),
  core('Event', 'events'),
  core('Node', 'nodes', false),
  core('Namespace', 'namespaces', false),
  { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', plural: 'leases', namespaced: true },
];

/** "pod", "pods", "Pod". Throws UserError. Pure. */
export function kindOf(word: string): Kind {
  const lower = word.toLowerCase();
  const found = KINDS.find(({ kind, plural }) => plural === lower || kind.toLowerCase() === lower);
  if (found === undefined) throw new UserError(`this kubectl does not know the kind "${word}"`);
  return found;
}

/** "pod/a", "b" after "pod": each object that the words name. Pure. */
export function namedObjects(words: readonly string[]): readonly { readonly kind: Kind; readonly name: string }[] {
  const [first = '', ...rest] = words;
  if (!first.includes('/')) return rest.map((name) => ({ kind: kindOf(first), name }));
  return words.map((word) => {
    const [kind = '', name = ''] = word.split('/');
    return { kind: kindOf(kind), name };
  });
}

/** "30s", "1m30s" in ms. Throws UserError. Pure. */
export function timeoutMs(text: string): number {
  const ms = parseGoDuration(text);
  if (ms === undefined || ms < 0) throw new UserError(`"${text}" is not a time such as 30s`);
  return ms;
}

const OPTIONS = {
  namespace: { type: 'string', short: 'n' },
  output: { type: 'string', short: 'o' },
  filename: { type: 'string', short: 'f', multiple: true },
  previous: { type: 'boolean', short: 'p' },
  tail: { type: 'string' },
  for: { type: 'string' },
  timeout: { type: 'string' },
  wait: { type: 'string' },
  'show-labels': { type: 'boolean' },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

interface Call {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly words: readonly string[];
  readonly values: Values;
  /** After "--". */
  readonly program: readonly string[];
  readonly print: (text: string) => void;
}

function pathOf({ namespace }: Call, { apiVersion, plural, namespaced }: Kind, name?: string): string {
  return resourcePath(apiVersion, plural, {
    ...(namespaced ? { namespace } : {}),
    ...(name === undefined ? {} : { name }),
  });
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** Creates, or merges into what is there. Unlike kubectl's it removes no field that the manifest does not have any more. */
async function apply(call: Call): Promise<void> {
  for (const file of call.values.filename ?? []) {
    for (const document of parseAllDocuments(await readFile(file, 'utf8'))) {
      const manifest: Manifest = document.toJS();
      const kind = kindOf(manifest.kind);
      const { name } = manifest.metadata;
      const shown = `${kind.kind.toLowerCase()}/${name}`;
      try {
        await call.client.patch(pathOf(call, kind, name), manifest, 'strategic');
        call.print(`${shown} configured\n`);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        await call.client.create(pathOf(call, kind), manifest, { query: { fieldValidation: 'Strict' } });
        call.print(`${shown} created\n`);
      }
    }
  }
}

async function remove(call: Call): Promise<void> {
  for (const { kind, name } of namedObjects(call.words)) {
    const path = pathOf(call, kind, name);
    const { metadata } = await call.client.get<Listed>(path);
    await call.client.delete(path);
    call.print(`${kind.kind.toLowerCase()} "${name}" deleted\n`);
    if (call.values.wait === 'false') continue;
    const gone = async (): Promise<boolean> => {
      try {
        return (await call.client.get<Listed>(path)).metadata.uid !== metadata.uid;
      } catch (error) {
        if (isNotFound(error)) return true;
        throw error;
      }
    };
    if (!(await poll(gone, { clock: systemClock, everyMs: LOOK_MS, limitMs: DELETE_MS })))
      throw new UserError(`timed out waiting for ${name} to go`);
  }
}

/** The table of one object, or of all of a kind, with the columns of that kind. */
async function table(call: Call, kind: Kind, name: string | undefined): Promise<string> {
  const read = async <T extends Listed>(): Promise<readonly T[]> => {
    if (name !== undefined) return [await call.client.get<T>(pathOf(call, kind, name))];
    return (await call.client.list<T>(pathOf(call, kind))).items;
  };
  const look = { wide: call.values.output === 'wide', labels: call.values['show-labels'] === true };
  switch (kind.kind) {
    case 'Pod':
      return tableOf(POD_COLUMNS, await read<Pod>(), look);
    case 'Node':
      return tableOf(NODE_COLUMNS, await read<Node>(), look);
    case 'Service':
      return tableOf(SERVICE_COLUMNS, await read<Service>(), look);
    default:
      return tableOf(NO_COLUMNS, await read<Listed>(), look);
  }
}

async function get(call: Call): Promise<void> {
  const { output = '' } = call.values;
  const [word = '', second] = call.words;
  const [kindWord = '', slashed] = word.split('/');
  const kind = kindOf(kindWord);
  const name = slashed ?? second;
  if (output === '' || output === 'wide') {
    call.print(await table(call, kind, name));
    return;
  }
  if (name === undefined) throw new UserError(`this kubectl prints lists as tables, not as "${output}"`);
  const object = await call.client.get<Listed>(pathOf(call, kind, name));
  const template = /^jsonpath=(.*)$/s.exec(output)?.[1];
  if (template !== undefined) call.print(evaluateJsonPath(template, object));
  else if (output === 'yaml') call.print(stringify(object));
  else if (output === 'json') call.print(`${JSON.stringify(object, undefined, 4)}\n`);
  else throw new UserError(`this kubectl does not print "${output}"`);
}

async function describe(call: Call): Promise<void> {
  for (const { kind, name } of namedObjects(call.words)) {
    const object = await call.client.get<Listed>(pathOf(call, kind, name));
    const { metadata, ...rest } = object;
    call.print(stringify({ name: metadata.name, labels: labelsText(object), ...rest }));
    const events = await call.client.list<Event>(
      resourcePath('v1', 'events', kind.namespaced ? { namespace: call.namespace } : {}),
    );
    const own = events.items.filter(
      ({ involvedObject }) => involvedObject.name === name && involvedObject.kind === kind.kind,
    );
    call.print(own.length === 0 ? 'Events: none\n' : 'Events:\n');
    for (const { type, reason, count = 1, message } of own) {
      call.print(`  ${type}  ${reason}${count > 1 ? ` (x${count})` : ''}  ${message?.trim()}\n`);
    }
  }
}

async function logs(call: Call): Promise<void> {
  const { previous = false, tail } = call.values;
  const request = { namespace: call.namespace, pod: call.words[0] ?? '' };
  const lines = tail === undefined ? {} : { tailLines: Number(tail) };
  call.print(await readLogs(call.client, { ...request, ...lines, ...(previous ? { previous } : {}) }));
}

/** Resolves with the exit code of the program. */
async function execute(call: Call): Promise<number> {
  const request = { namespace: call.namespace, pod: call.words[0] ?? '', command: call.program };
  const { stdout, stderr, exitCode } = await execInPod(call.client.access, request);
  call.print(stdout);
  process.stderr.write(stderr);
  return exitCode;
}

async function wait(call: Call): Promise<void> {
  const { for: condition = '', timeout = '30s' } = call.values;
  const type = /^condition=(\w+)$/.exec(condition)?.[1];
  if (type === undefined) throw new UserError('this kubectl waits for --for=condition=TYPE');
  for (const { kind, name } of namedObjects(call.words)) {
    const met = async (): Promise<boolean> => {
      const { status } = await call.client.get<Pod | Node>(pathOf(call, kind, name));
      return status?.conditions?.some((each) => each.type === type && each.status === 'True') === true;
    };
    const shown = `${kind.kind.toLowerCase()}/${name}`;
    if (!(await poll(met, { clock: systemClock, everyMs: LOOK_MS, limitMs: timeoutMs(timeout) })))
      throw new UserError(`timed out waiting for the condition on ${shown}`);
    call.print(`${shown} condition met\n`);
  }
}

/** "key=value" sets, "key-" removes. Throws UserError. Pure. */
export function labelChanges(words: readonly string[]): Readonly<Record<string, string | null>> {
  return Object.fromEntries(
    words.map((word) => {
      if (word.endsWith('-')) return [word.slice(0, -1), null];
      const [key = '', value] = word.split('=');
      if (value === undefined) throw new UserError(`"${word}" is neither KEY=VALUE nor KEY-`);
      return [key, value];
    }),
  );
}

async function label(call: Call): Promise<void> {
  const [word = '', name = '', ...changes] = call.words;
  const kind = kindOf(word);
  await call.client.patch(pathOf(call, kind, name), { metadata: { labels: labelChanges(changes) } }, 'merge');
  call.print(`${kind.kind.toLowerCase()}/${name} labeled\n`);
}

type Taints = NonNullable<NonNullable<Node['spec']>['taints']>;

/** "key=value:Effect" sets, "key-" and "key:Effect-" remove. Pure. */
export function taintsAfter(before: Taints, words: readonly string[]): Taints {
  let taints = before;
  for (const word of words) {
    const removed = word.endsWith('-');
    const [pair = '', effect] = (removed ? word.slice(0, -1) : word).split(':');
    const [key = '', value = ''] = pair.split('=');
    taints = taints.filter((each) => each.key !== key || (effect !== undefined && each.effect !== effect));
    if (!removed) taints = [...taints, { key, value, effect: effect ?? 'NoSchedule' }];
  }
  return taints;
}

async function taint(call: Call): Promise<void> {
  const [word = '', name = '', ...changes] = call.words;
  const path = pathOf(call, kindOf(word), name);
  const { spec } = await call.client.get<Node>(path);
  const taints = taintsAfter(spec?.taints ?? [], changes);
  await call.client.patch(path, { spec: { taints } }, 'merge');
  call.print(`node/${name} ${changes.every((change) => change.endsWith('-')) ? 'untainted' : 'tainted'}\n`);
}

const COMMANDS = new Map<string, (call: Call) => Promise<unknown>>([
  ['apply', apply],
  ['delete', remove],
  ['get', get],
  ['describe', describe],
  ['logs', logs],
  ['exec', execute],
  ['wait', wait],
  ['label', label],
  ['taint', taint],
]);

function parseWords(argv: readonly string[]): { values: Values; words: readonly string[]; program: readonly string[] } {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  try {
    const { values, positionals } = parseArgs({ args: [...own], options: OPTIONS, allowPositionals: true });
    return { values, words: positionals, program: end < 0 ? [] : argv.slice(end + 1) };
  } catch (error) {
    if (error instanceof TypeError) throw new UserError(`this kubectl: ${error.message}`);
    throw error;
  }
}

/** Resolves with the exit code. Rejects with UserError. */
export async function runKubectl(
  argv: readonly string[],
  kubeconfig: string | undefined,
  print: (text: string) => void,
): Promise<number> {
  const { values, words, program } = parseWords(argv);
  const [verb = '', ...rest] = words;
  const command = COMMANDS.get(verb);
  if (command === undefined)
    throw new UserError(`this kubectl has no command "${verb}", only ${[...COMMANDS.keys()].join(', ')}`);
  if (kubeconfig === undefined) throw new UserError('KUBECONFIG is not set');
  const access = await loadKubeconfig(kubeconfig);
  const client = new ApiClient(access, { tracer: new Tracer(), clock: systemClock, userAgent: 'nodelet-lab' });
  try {
    const namespace = values.namespace ?? access.namespace ?? 'default';
    // That of the program for exec; the others have none of their own.
    const code = await command({ client, namespace, words: rest, values, program, print });
    return typeof code === 'number' ? code : 0;
  } catch (error) {
    if (error instanceof ApiError || isUnreachable(error)) throw new UserError(errorMessage(error), { cause: error });
    throw error;
  } finally {
    client.close();
  }
}
