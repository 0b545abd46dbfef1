// The steps of an experiment on a lab: what changes the cluster goes through the API, what changes the node to its processes
// and to what stands between them. A step that cannot be done rejects with UserError.

import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import type { ApiClient } from '../../../client/api.ts';
import { ApiError, isAlreadyExists, isForbidden, isNotFound, isTransient } from '../../../client/errors.ts';
import { execInPod } from '../../../client/exec.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../../../lib/errors.ts';
import { parseQuantity } from '../../../lib/quantity.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { poll, retry, steadyPauses } from '../../../lib/retry.ts';
import type { RunningLab } from '../../lab/lab.ts';
import type { LabProcess } from '../../lab/paths.ts';
import { parseObjectName } from '../../object-name.ts';
import type { FaultProxy } from '../../tap/fault-proxy.ts';
import { milliseconds } from '../duration.ts';
import type { FaultRule, ProcessName } from '../model.ts';
import { isStaticPod, staticPodFile } from '../static-pods.ts';
import type { WorldStep } from '../world.ts';
import type { ContainerWatch } from './containers.ts';
import { cniRuleFiles, criFaults, csiFaults } from './faults.ts';
import type { Link } from './link.ts';
import type { Kinds } from './objects.ts';
import { withLabServer } from './silent-servers.ts';

export interface StepParts {
  readonly lab: RunningLab;
  readonly kinds: Kinds;
  /** Of pods that are named without one. Default "default". */
  readonly namespace?: string | undefined;
  readonly containers: ContainerWatch;
  readonly clock: Clock;
  /** Aborts when the world is closed. */
  readonly signal: AbortSignal;
  /** Between the agent and what it calls, where the experiment needs it. */
  readonly links: { readonly apiserver?: Link | undefined; readonly runtime?: Link | undefined };
  readonly criFaults?: FaultProxy | undefined;
  readonly apiFaults?: { setFaults(rules: readonly FaultRule[]): Promise<void> } | undefined;
  /** The wrapper's directory, where CNI calls can fail. */
  readonly cniDirectory?: string | undefined;
  readonly csiFaultFile?: string | undefined;
  /** The agent's staticPodPath, where the experiment has static pods. */
  readonly staticPodDirectory?: string | undefined;
  /** Of what goes on in the background after its step. */
  readonly onFailure: (error: Error) => void;
}

/** Of what the control plane makes a moment later: a new namespace's service account. */
const CREATE_MS = 30_000;
const EXEC_MS = 120_000;
const STEP_RETRY_MS = 200;

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

function isManifest(value: unknown): value is Manifest {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('metadata' in value)) return false;
  const { kind, metadata } = value;
  return typeof kind === 'string' && typeof metadata === 'object' && metadata !== null && 'name' in metadata;
}

/** What a shell does in a container to take so much of something and keep it. Throws UserError. Pure. */
export function useCommand(use: {
  readonly memory?: string;
  readonly disk?: string;
  readonly pids?: number;
}): readonly string[] {
  const bytes = (what: string, text: string): number => {
    const nano = parseQuantity(text);
    if (nano === undefined || nano <= 0n) throw new UserError(`use.${what}: "${text}" is not a quantity above zero`);
    return Number(nano / 1_000_000_000n);
  };
  const parts = [
    // tail keeps a line in memory until its end, which comes when sleep ends.
    ...(use.memory === undefined
      ? []
      : [`(head -c ${bytes('memory', use.memory)} /dev/zero | tr '\\000' x; sleep 1000000) | tail -n 1 >/dev/null &`]),
    ...(use.disk === undefined ? [] : [`head -c ${bytes('disk', use.disk)} /dev/zero > /use-disk &`]),
    ...(use.pids === undefined ? [] : [`i=0; while [ $i -lt ${use.pids} ]; do sleep 1000000 & i=$((i+1)); done`]),
  ];
  if (parts.length === 0) throw new UserError('use: needs one of memory, disk, pids');
  return ['sh', '-c', `${parts.join('\n')}\nwait`];
}

const LAB_PROCESSES: ReadonlyMap<ProcessName, LabProcess> = new Map([
  ['agent', 'agent'],
  ['containerd', 'containerd'],
  ['apiserver', 'apiserver'],
  ['csi-driver', 'csi-driver'],
]);

/** The pods of a shared lab end within it. */
const UNDO_MS = 60_000;

export class LabSteps {
  readonly #parts: StepParts;
  /** Paths of what was applied. */
  readonly #applied = new Set<string>();
  /** Files of static pods by the pod's name, without its node. */
  readonly #static = new Map<string, string>();
  readonly #halted = new Set<LabProcess>();

  constructor(parts: StepParts) {
    this.#parts = parts;
  }

  async perform(step: WorldStep): Promise<void> {
    try {
      await this.#perform(step);
    } catch (error) {
      if (error instanceof UserError || error instanceof ApiError || isTransient(error))
        throw new UserError(`${describeStep(step)}: ${errorMessage(error)}`, { cause: error });
      throw error;
    }
  }

  /** Takes away what was applied, last first, and starts what was killed: for a lab that is not the experiment's own. */
  async undo(): Promise<void> {
    const { lab, clock } = this.#parts;
    for (const name of this.#halted) await lab.resume(name);
    const paths = [...this.#applied].reverse();
    for (const path of paths) await requestDeletion(lab.client, path, clock);
    for (const path of paths) await waitUntilGone(lab.client, path, clock);
  }

  #perform(step: WorldStep): Promise<void> {
    const { lab } = this.#parts;
    if ('apply' in step) return this.#apply(step.apply);
    if ('delete' in step) return this.#delete(step.delete);
    if ('patch' in step) return this.#patch(step.patch);
    if ('exec' in step) return this.#exec(step.exec);
    if ('kill' in step) {
      if (!('process' in step.kill)) return this.#killContainer(step.kill);
      const name = processOf(step.kill.process);
      this.#halted.add(name);
      return lab.halt(name);
    }
    if ('start' in step) return lab.resume(processOf(step.start.process));
    if ('cut' in step) {
      const { from } = step.cut;
      return from === 'registry' ? this.#parts.lab.halt(from) : this.#link(from, (link) => link.cut());
    }
    if ('heal' in step) {
      const { from } = step.heal;
      return from === 'registry' ? this.#parts.lab.resume(from) : this.#link(from, (link) => link.heal());
    }
    if ('fault' in step) return this.#fault(step.fault.on, step.fault.rules);
    if ('use' in step) return this.#use(step.use);
    throw new UserError('a lab cannot do this');
  }

  async #apply(manifests: unknown): Promise<void> {
    if (!Array.isArray(manifests)) throw new UserError('the manifests are not a list');
    for (const manifest of manifests as readonly unknown[]) {
      if (!isManifest(manifest)) throw new UserError('a manifest needs kind and metadata.name');
      if (isStaticPod(manifest)) await this.#applyStatic(manifest);
      else await this.#applyOne(withLabServer(manifest, this.#parts.lab.state.dns?.server));
    }
  }

  async #applyStatic(manifest: Manifest): Promise<void> {
    const { staticPodDirectory } = this.#parts;
    if (staticPodDirectory === undefined) throw new UserError('the agent has no directory of static pods');
    const { name } = manifest.metadata;
    const file = join(staticPodDirectory, `${name}.json`);
    this.#static.set(name, file);
    await writeFileAtomic(file, staticPodFile(manifest));
  }

  async #applyOne(manifest: Manifest): Promise<void> {
    const { lab, kinds, clock, signal } = this.#parts;
    const { kind, metadata } = manifest;
    const collection = await kinds.path(kind, undefined, metadata.namespace);
    const object = await kinds.path(kind, metadata.name, metadata.namespace);
    this.#applied.add(object);
    const create = async (): Promise<void> => {
      try {
        await lab.client.create(collection, manifest, { signal });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        await lab.client.patch(object, manifest, 'merge', { signal });
      }
    };
    // A pod in a namespace that was just made waits for its service account.
    const mends = (error: unknown): boolean => isForbidden(error) || isTransient(error);
    await retry(create, { clock, policy: steadyPauses(STEP_RETRY_MS), limitMs: CREATE_MS, mends, signal });
  }

  async #delete(target: Extract<WorldStep, { readonly delete: unknown }>['delete']): Promise<void> {
    const { lab, kinds, signal } = this.#parts;
    const { kind, name, namespace, gracePeriod } = target;
    const file = kind === 'Pod' ? this.#static.get(name) : undefined;
    if (file !== undefined) {
      await rm(file);
      return;
    }
    const grace = gracePeriod === undefined ? {} : { gracePeriodSeconds: Math.ceil(milliseconds(gracePeriod) / 1000) };
    await lab.client.delete(await kinds.path(kind, name, namespace), { ...grace, signal });
  }

  async #patch(target: Extract<WorldStep, { readonly patch: unknown }>['patch']): Promise<void> {
    const { lab, kinds, signal } = this.#parts;
    const { kind, name, namespace, subresource, merge } = target;
    const path = await kinds.path(kind, name, namespace, subresource);
    // Containers and conditions are merged by name, as `kubectl patch` does.
    await lab.client.patch(path, merge, 'strategic', { signal }).catch(async (error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 415) throw error;
      await lab.client.patch(path, merge, 'merge', { signal });
    });
  }

  async #exec(target: Extract<WorldStep, { readonly exec: unknown }>['exec']): Promise<void> {
    const { lab, signal } = this.#parts;
    const { namespace, name } = parseObjectName(target.pod, this.#parts.namespace);
    const { exitCode, stderr } = await execInPod(lab.client.access, {
      namespace,
      pod: name,
      ...(target.container === undefined ? {} : { container: target.container }),
      command: target.command,
      signal: AbortSignal.any([signal, AbortSignal.timeout(EXEC_MS)]),
    });
    if (exitCode !== 0) throw new UserError(`the command ended with ${exitCode}: ${stderr.trim()}`);
  }

  async #killContainer(target: {
    readonly pod: string;
    readonly container: string;
    readonly signal?: string;
  }): Promise<void> {
    const { containers } = this.#parts;
    const { namespace, name } = parseObjectName(target.pod, this.#parts.namespace);
    const signal = `SIG${(target.signal ?? 'KILL').replace(/^SIG/, '')}`;
    const number = new Map(Object.entries(constants.signals)).get(signal);
    if (number === undefined) throw new UserError(`there is no signal ${target.signal}`);
    const pid = await containers.pid(`${namespace}/${name}`, target.container);
    if (pid === undefined) throw new UserError(`${namespace}/${name} has no running container ${target.container}`);
    try {
      process.kill(pid, number);
    } catch (error) {
      if (isErrno(error, 'ESRCH')) throw new UserError(`the container ${target.container} has just ended`);
      throw error;
    }
  }

  async #link(from: 'apiserver' | 'runtime', act: (link: Link) => void): Promise<void> {
    const link = this.#parts.links[from];
    if (link === undefined) throw new UserError(`nothing is between the agent and the ${from}`);
    act(link);
  }

  async #fault(on: 'cri' | 'cni' | 'csi' | 'api' | 'dns', rules: readonly FaultRule[]): Promise<void> {
    const { criFaults: proxy, apiFaults, cniDirectory, csiFaultFile } = this.#parts;
    if (on === 'cri' && proxy !== undefined) proxy.setFaults(criFaults(rules));
    else if (on === 'api' && apiFaults !== undefined) await apiFaults.setFaults(rules);
    else if (on === 'cni' && cniDirectory !== undefined) await writeCniRules(cniDirectory, rules);
    else if (on === 'csi' && csiFaultFile !== undefined) await writeFileAtomic(csiFaultFile, csiFaults(rules));
    else throw new UserError(`nothing here makes faults of ${on}`);
  }

  /** Goes on while the experiment does: what takes memory has to live. */
  async #use({ pod = '', ...use }: Extract<WorldStep, { readonly use: unknown }>['use']): Promise<void> {
    const { lab, signal, onFailure } = this.#parts;
    const { namespace, name } = parseObjectName(pod, this.#parts.namespace);
    const command = useCommand(use);
    execInPod(lab.client.access, { namespace, pod: name, command, signal }).catch((error: unknown) => {
      // The container ends with what it runs, by being killed for want of memory.
      if (!signal.aborted && isNotFound(error)) onFailure(new UserError(`use in ${pod}: ${errorMessage(error)}`));
    });
  }
}

async function requestDeletion(client: ApiClient, path: string, clock: Clock): Promise<void> {
  const remove = async (): Promise<unknown> => client.delete(path, { gracePeriodSeconds: 1 }).catch(unlessGone);
  await retry(remove, { clock, policy: steadyPauses(STEP_RETRY_MS), limitMs: UNDO_MS, mends: isTransient });
}

async function waitUntilGone(client: ApiClient, path: string, clock: Clock): Promise<void> {
  const isGone = async (): Promise<boolean> => (await client.get(path).catch(unlessGone)) === undefined;
  if (!(await poll(isGone, { clock, everyMs: STEP_RETRY_MS, limitMs: UNDO_MS })))
    throw new UserError(`${path} did not end within ${UNDO_MS / 1000} s`);
}

/** Rejects with UserError when the object is still there after a minute. */
export async function deleteAndWait(client: ApiClient, path: string, clock: Clock): Promise<void> {
  await requestDeletion(client, path, clock);
  await waitUntilGone(client, path, clock);
}

function unlessGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

function processOf(name: ProcessName): LabProcess {
  const found = LAB_PROCESSES.get(name);
  if (found === undefined) throw new UserError(`${name} is no process of its own in a lab`);
  return found;
}

/** Replaces all rules at once: a plugin that starts meanwhile has the former or the new ones. */
async function writeCniRules(directory: string, rules: readonly FaultRule[]): Promise<void> {
  const next = join(directory, 'rules-next');
  await mkdir(next, { recursive: true });
  for (const [index, rule] of rules.entries()) {
    const place = join(next, String(index).padStart(4, '0'));
    for (const [name, text] of cniRuleFiles(rule)) {
      await mkdir(dirname(join(place, name)), { recursive: true });
      await writeFile(join(place, name), text);
    }
  }
  const old = join(directory, 'rules-old');
  try {
    await rename(join(directory, 'rules'), old);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
  await rename(next, join(directory, 'rules'));
  await removeTree(old);
}

/** For messages: "kill agent", "delete Pod web". */
export function describeStep(step: WorldStep): string {
  if (step.name !== undefined) return step.name;
  if ('delete' in step) return `delete ${step.delete.kind} ${step.delete.name}`;
  if ('patch' in step) return `patch ${step.patch.kind} ${step.patch.name}`;
  if ('exec' in step) return `exec in ${step.exec.pod}`;
  if ('kill' in step)
    return `kill ${'process' in step.kill ? step.kill.process : `${step.kill.container} of ${step.kill.pod}`}`;
  if ('start' in step) return `start ${step.start.process}`;
  if ('fault' in step) return `fault on ${step.fault.on}`;
  if ('cut' in step) return `cut from ${step.cut.from}`;
  if ('heal' in step) return `heal ${step.heal.from}`;
  return Object.keys(step).find((key) => key !== 'name') ?? 'step';
}
