// What the end-to-end tests of the agent share: pods written in few words, waiting for what kubectl shows, and a list of
// everything a pod can leave on a machine. The lab itself is ../support/lab.ts.

import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { ApiError, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import type { ContainerStatus, Event, Node, Pod, PodSpec } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage, isErrno } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { readProcess } from '../../../lib/processes.ts';
import type { Span } from '../../../lib/trace.ts';
import type { TestLab } from '../support/lab.ts';

/** For giving up only: two busy cores may take long over what a quiet machine does at once. */
const PATIENCE_MS = 120_000;
/** As long as kubectl itself may take in a test. */
const DELETED_MS = 120_000;
/** What only a garbage collection finds, which the agent has once a minute, is gone after that. */
const NOTHING_LEFT_MS = 200_000;

/** The pause between two polls: polls that start programs (kubectl, find) must not take the CPU from what they wait for. */
const LEAST_PAUSE_MS = 100;
const MOST_PAUSE_MS = 1_000;

/** Waits until `condition` returns a value; its last error is in the message of the failure. */
export async function eventually<T>(
  what: string,
  condition: () => T | undefined | Promise<T | undefined>,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let trouble = '';
  for (;;) {
    const began = performance.now();
    try {
      const value = await condition();
      if (value !== undefined) return value;
    } catch (error) {
      trouble = `: ${errorMessage(error)}`;
    }
    const now = performance.now();
    if (now > deadline) throw new Error(`timed out waiting for ${what}${trouble}`);
    await systemClock.sleep(Math.min(Math.max(LEAST_PAUSE_MS, 2 * (now - began)), MOST_PAUSE_MS));
  }
}

/** A manifest of a pod of one busybox container that runs a shell script. */
export function shellPod(name: string, script: string, spec: Partial<PodSpec> = {}, container: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'busybox:stable', command: ['sh', '-c', script], ...container }],
      ...spec,
    },
  };
}

/** A script that runs until it receives TERM, and then exits at once. */
export const FOREVER = 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done';

/** Where the kinds that tests make most often are; what is in no namespace, or rare, is left to kubectl. */
const PLURALS: ReadonlyMap<string, string> = new Map([
  ['v1 Pod', 'pods'],
  ['v1 ConfigMap', 'configmaps'],
  ['v1 Secret', 'secrets'],
  ['v1 Service', 'services'],
  ['v1 PersistentVolumeClaim', 'persistentvolumeclaims'],
]);

interface Manifest {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: { readonly namespace?: string; readonly annotations?: Readonly<Record<string, string>> };
}

/** Creates one object as `kubectl apply` does, with its annotation and strict about fields. False: kubectl has to do it. */
async function created(lab: TestLab, manifest: Manifest): Promise<boolean> {
  const { apiVersion = '', kind = '', metadata = {} } = manifest;
  const plural = PLURALS.get(`${apiVersion} ${kind}`);
  if (plural === undefined) return false;
  const { annotations = {}, namespace = lab.namespace } = metadata;
  const applied = `${JSON.stringify({ ...manifest, metadata: { ...metadata, annotations, namespace } })}\n`;
  const all = { ...annotations, 'kubectl.kubernetes.io/last-applied-configuration': applied };
  const body = { ...manifest, metadata: { ...metadata, namespace, annotations: all } };
  try {
    await lab.client.create(resourcePath(apiVersion, plural, { namespace }), body, {
      query: { fieldValidation: 'Strict' },
    });
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

/**
 * What `kubectl apply -f -` does. New objects are created without kubectl, which takes a tenth of a second of processor
 * time for each call; kubectl itself does the rest, from the first object on that exists or is refused, in its own words.
 */
export async function apply(lab: TestLab, ...objects: readonly object[]): Promise<void> {
  let done = 0;
  for (const object of objects) {
    if (!(await created(lab, object))) break;
    done++;
  }
  if (done === objects.length) return;
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects.slice(done) });
  const result = await lab.tryKubectl(['apply', '-f', '-'], { stdin: list });
  if (result.code !== 0) throw new Error(result.stderr);
}

export function podPath(name: string, namespace = 'default'): string {
  return resourcePath('v1', 'pods', { namespace, name });
}

export function getPod(lab: Pick<TestLab, 'client' | 'namespace'>, name: string): Promise<Pod> {
  return lab.client.get<Pod>(podPath(name, lab.namespace));
}

/** Waits until the pod is as `accept` wants it. */
export async function podWhen(
  lab: TestLab,
  name: string,
  what: string,
  accept: (pod: Pod) => boolean,
  timeoutMs?: number,
): Promise<Pod> {
  let last: Pod | undefined;
  try {
    const seen = async (): Promise<Pod | undefined> => {
      last = await getPod(lab, name);
      return accept(last) ? last : undefined;
    };
    return await eventually(`pod ${name} to be ${what}`, seen, timeoutMs);
  } catch (error) {
    throw new Error(`${errorMessage(error)}; it is ${JSON.stringify(last?.status)}`);
  }
}

/**
 * Watches a pod from now on, and resolves with the first version that is as `accept` wants it: for what lasts only a
 * moment, and is over when someone looks again. To be called before whatever leads to it.
 */
export async function podSeen(
  lab: Pick<TestLab, 'client' | 'namespace'>,
  name: string,
  what: string,
  accept: (pod: Pod) => boolean,
): Promise<{ readonly seen: Promise<Pod> }> {
  const path = resourcePath('v1', 'pods', { namespace: lab.namespace });
  const query = { fieldSelector: `metadata.name=${name}` };
  const reflector = new Reflector<Pod>({ client: lab.client, path, query, clock: systemClock });
  const over = new AbortController();
  const versions: Pod[] = [];
  reflector.store.onChange((changes) => {
    for (const change of changes) if (change.type !== 'removed') versions.push(change.object);
  });
  const watching = reflector.run(over.signal);
  await reflector.store.whenSynced();
  const found = async (): Promise<Pod> => {
    try {
      return await eventually(`pod ${name} to have been ${what}`, () => versions.find(accept));
    } catch (error) {
      throw new Error(`${errorMessage(error)}; it was ${JSON.stringify(versions.map(({ status }) => status))}`);
    } finally {
      over.abort();
      await watching;
    }
  };
  return { seen: found() };
}

export function isReady(pod: Pod): boolean {
  return condition(pod, 'Ready')?.status === 'True';
}

export function ready(lab: TestLab, name: string, timeoutMs?: number): Promise<Pod> {
  return podWhen(lab, name, 'Ready', isReady, timeoutMs);
}

export function condition(object: Pod | Node, type: string) {
  return object.status?.conditions?.find((each) => each.type === type);
}

export function container(pod: Pod, name = 'main'): ContainerStatus {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const found = [...initContainerStatuses, ...containerStatuses].find((status) => status.name === name);
  if (found === undefined) throw new Error(`pod ${pod.metadata.name} has no status of a container ${name}`);
  return found;
}

export async function gone(
  lab: Pick<TestLab, 'client' | 'namespace'>,
  name: string,
  timeoutMs?: number,
): Promise<void> {
  await eventually(
    `pod ${name} to be gone`,
    async () => {
      try {
        await getPod(lab, name);
        return undefined;
      } catch (error) {
        if (isNotFound(error)) return true;
        throw error;
      }
    },
    timeoutMs,
  );
}

export interface Deletion {
  /** Instead of the pods' own grace period. Seconds. */
  readonly graceSeconds?: number;
  /** Until the pods are gone; by default true. */
  readonly wait?: boolean;
}

/** What `kubectl delete pod` does, without the tenth of a second of processor time that kubectl takes for each call. */
export async function deletePods(
  lab: Pick<TestLab, 'client' | 'namespace'>,
  names: readonly string[],
  { graceSeconds, wait = true }: Deletion = {},
): Promise<void> {
  const options = {
    propagationPolicy: 'Background' as const,
    ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
  };
  for (const name of names) await lab.client.delete(podPath(name, lab.namespace), options);
  if (wait) await Promise.all(names.map((name) => gone(lab, name, DELETED_MS)));
}

export async function eventsOf(lab: TestLab, name: string): Promise<readonly Event[]> {
  const path = resourcePath('v1', 'events', { namespace: lab.namespace });
  const list = await lab.client.list<Event & { metadata: { name: string; uid: string; resourceVersion: string } }>(
    path,
    {
      fieldSelector: `involvedObject.name=${name}`,
    },
  );
  return list.items;
}

/** Waits for an event with this reason whose message matches. */
export function eventWhen(
  lab: TestLab,
  name: string,
  reason: string,
  message = /./,
  timeoutMs?: number,
): Promise<Event> {
  const found = async (): Promise<Event | undefined> =>
    (await eventsOf(lab, name)).find((event) => event.reason === reason && message.test(event.message ?? ''));
  return eventually(`event ${reason} of ${name} matching ${message}`, found, timeoutMs);
}

/** Waits until a command in a pod prints this: a container that runs has not done everything it is there for. */
export async function prints(lab: TestLab, expected: string | RegExp, ...kubectl: string[]): Promise<string> {
  let last = '';
  return await eventually(`kubectl ${kubectl.join(' ')} to print ${expected}`, async () => {
    const { code, stdout, stderr } = await lab.tryKubectl(kubectl);
    last = `${stdout}${stderr}`;
    const matches = typeof expected === 'string' ? stdout === expected : expected.test(stdout);
    return code === 0 && matches ? stdout : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${errorMessage(error)}; it printed ${last}`);
  });
}

/** Waits until the script FOREVER has come to its wait: before that the container's first process knows no TERM, and ignores it. */
export async function handlesTerm(lab: TestLab, name: string): Promise<void> {
  await prints(lab, /^\d/, 'exec', name, '-c', 'main', '--', 'pidof', 'sleep');
}

export function nodeWhen(
  lab: TestLab,
  what: string,
  accept: (ready: { status: string; reason?: string; message?: string }) => boolean,
  timeoutMs?: number,
): Promise<{ status: string; reason?: string; message?: string }> {
  const path = resourcePath('v1', 'nodes', { name: lab.nodeName });
  let last = '';
  const seen = async () => {
    const found = condition(await lab.client.get<Node>(path), 'Ready');
    last = JSON.stringify(found);
    return found !== undefined && accept(found) ? found : undefined;
  };
  return eventually(`the node to be ${what}`, seen, timeoutMs).catch((error: unknown) => {
    throw new Error(`${errorMessage(error)}; it is ${last}`);
  });
}

// ---------------------------------------------------------------- the machine

/** Host pids of the processes of one container of a pod (all containers without `containerId`), from its cgroup. */
export async function pidsOf(lab: TestLab, uid: string, containerId = ''): Promise<readonly number[]> {
  const id = containerId.replace(/^.*\/\//, '');
  const pids = new Set<number>();
  for (const directory of await cgroupsOf(lab, uid)) {
    // A cgroup may be removed during the search: a removed one has no processes.
    const { stdout: found } = await exec('find', [
      directory,
      '-path',
      `*${id}*`,
      '-name',
      'cgroup.procs',
      '-exec',
      'cat',
      '{}',
      '+',
    ]);
    for (const line of found.split('\n')) if (line !== '') pids.add(Number(line));
  }
  return [...pids].sort((a, b) => a - b);
}

/** What a process runs; '' for one that has gone meanwhile. */
export async function commandLine(pid: number): Promise<string> {
  return (await exec('cat', [`/proc/${pid}/cmdline`])).stdout;
}

/**
 * Host pid of the first process of a container: the one in its cgroup that no other one there has started. While the
 * runtime makes the container or runs a command in it, its own programs are in the cgroup too: those are let pass.
 */
export function mainProcess(lab: TestLab, pod: Pod, name?: string): Promise<number> {
  const id = container(pod, name).containerID ?? '';
  return eventually(`one first process of ${pod.metadata.name}`, async () => {
    const entries = await Promise.all((await pidsOf(lab, pod.metadata.uid, id)).map(readProcess));
    const living = entries.filter((entry) => entry !== undefined);
    const pids = new Set(living.map(({ pid }) => pid));
    const [first, ...others] = living.filter(({ ppid }) => !pids.has(ppid));
    if (first === undefined || others.length > 0 || first.argv.some((word) => /^(\S*\/)?runc/.test(word)))
      return undefined;
    return first.pid;
  });
}

/** Every directory of this pod's cgroup: one per v1 hierarchy, one on v2. */
export async function cgroupsOf(lab: TestLab, uid: string): Promise<readonly string[]> {
  const pattern = `*${lab.paths.cgroupRoot}/*pod${uid}`;
  const { stdout } = await exec('find', ['/sys/fs/cgroup', '-type', 'd', '-path', pattern, '-prune']);
  return stdout.split('\n').filter((line) => line !== '');
}

/** The addresses that host-local has lent, by the sandbox they were lent to. */
export async function leases(lab: TestLab): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await exec('grep', ['-r', '', lab.paths.cni.leaseDir]);
  const found = new Map<string, string>();
  for (const line of stdout.split('\n')) {
    const match = /\/(\d+\.\d+\.\d+\.\d+):([0-9a-f]{64})/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) found.set(match[2], match[1]);
  }
  return found;
}

/** The links that are ports of the lab's bridge. */
export async function bridgePorts(lab: TestLab): Promise<readonly string[]> {
  const { stdout } = await exec('ip', ['-o', 'link', 'show', 'master', lab.paths.bridge]);
  return stdout.split('\n').flatMap((line) => /^\d+: ([^@:]+)/.exec(line)?.[1] ?? []);
}

/**
 * Everything on the machine that belongs to pods of this lab, one line each. Two results are equal when nothing was leaked
 * between them: the lines are the resources' own names, not counts.
 */
export async function podResources(lab: TestLab): Promise<readonly string[]> {
  const { paths } = lab;
  const find = async (...args: string[]): Promise<string[]> =>
    (await exec('find', args)).stdout.split('\n').filter((line) => line !== '');
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .filter((point) => point.startsWith(paths.kubeletDir) || point.startsWith(paths.containerd.state));
  const addresses = lab.lab.state.subnet.replace(/\d+\/\d+$/, '');
  const rules = (await execOk('iptables-save', []))
    .split('\n')
    .filter((line) => line.includes(paths.networkName) || line.includes(addresses));
  // Those that containerd has lost are looked for when the lab is left (../support/shims.ts).
  const ctr = ['--address', paths.containerd.socket, '-n', 'k8s.io', 'containers', 'ls', '-q'];
  const known = new Set((await execOk('ctr', ctr)).split('\n'));
  const shims = (await labProcesses(lab.root)).filter(
    ({ comm, argv }) => comm.startsWith('containerd-shim') && known.has(argv[argv.indexOf('-id') + 1] ?? ''),
  );
  const things = [
    ...(await find('/sys/fs/cgroup', '-type', 'd', '-path', `*${paths.cgroupRoot}/*`, '-name', '*pod*-*')),
    ...(await find(join(paths.kubeletDir, 'pods'), '-mindepth', '1', '-maxdepth', '1')),
    ...(await find(paths.podLogsDir, '-mindepth', '1')),
    ...(await find(paths.containerLogsDir, '-mindepth', '1')),
    ...(await find(paths.cni.cacheDir, '-type', 'f')),
    ...[...(await leases(lab))].map((lease) => `lease ${lease.join(' ')}`),
    ...(await bridgePorts(lab)).map((name) => `link ${name}`),
    ...mounts.map((point) => `mount ${point}`),
    ...rules,
    ...shims.map((entry) => `process ${entry.argv.join(' ')}`),
  ];
  return things.sort();
}

/** Waits until the machine shows the same as before; reports what is left. */
export async function nothingLeft(lab: TestLab, before: readonly string[]): Promise<void> {
  let left: readonly string[] = [];
  const look = async (): Promise<true | undefined> => {
    left = (await podResources(lab)).filter((thing) => !before.includes(thing));
    return left.length === 0 ? true : undefined;
  };
  await eventually('everything of the pods to be gone', look, NOTHING_LEFT_MS).catch(() => {
    throw new Error(`left on the machine:\n${left.join('\n')}`);
  });
}

/** Status and body of a GET from this machine. A container may run, and its server not listen yet: repeated until it does. */
export async function httpGet(url: string): Promise<{ status: number; body: string }> {
  return await eventually(`an answer of ${url}`, async () => {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    return { status: response.status, body: await response.text() };
  });
}

/** The spans of the agent's trace socket (the newest ones): who closes its side at once is sent what is kept, and then the end. */
export async function spans(lab: TestLab): Promise<readonly Span[]> {
  const kept = await text(connect(lab.paths.traceSocket).end());
  return kept
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Span => JSON.parse(line));
}

/** The agent's process and its resident memory, bytes. Two results compare only where it is the same process. */
export async function agentMemory(lab: TestLab): Promise<{ readonly pid: number; readonly bytes: number }> {
  const pid = await eventually('the agent to run', () => lab.lab.pid('agent'));
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kib === undefined) throw new Error(`no VmRSS of the agent's process ${pid}:\n${status}`);
  return { pid, bytes: Number(kib) * 1024 };
}

export async function agentLog(lab: TestLab): Promise<string> {
  return await readFile(lab.paths.logFile('agent'), 'utf8');
}

export async function filesIn(path: string): Promise<readonly string[]> {
  try {
    return (await readdir(path)).sort();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
