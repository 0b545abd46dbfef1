// The commands that change pods and containers: runp, create, start, run, update, stop, rm, stopp, rmp, checkpoint.

import { glob, rm } from 'node:fs/promises';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import type { ContainerConfig } from '../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { LinuxContainerResources } from '../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { Flags } from './arguments.ts';
import type { Console } from './console.ts';
import type { CallLimits, Cri } from './cri.ts';
import { pullAuth, pullImage } from './images.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { loadContainerConfig, loadSandboxConfig } from './pod-config.ts';
import { allOf, failed } from './report.ts';

const noIds = (): UserError => new UserError('ID cannot be empty');

/** --cancel-timeout, where it is given. */
function cancelTimeout(flags: Flags): CallLimits {
  const ms = flags.number('cancel-timeout');
  return ms > 0 ? { timeoutMs: ms } : {};
}

async function runSandbox(cri: Cri, config: PodSandboxConfig, handler: string, limits: CallLimits): Promise<string> {
  const call = cri.call('RunPodSandbox', { config, runtime_handler: handler }, limits);
  return (await failed('run pod sandbox', call)).pod_sandbox_id;
}

export async function runp({ flags, args, console, openCri }: Invocation): Promise<void> {
  const [path = ''] = args;
  if (args.length !== 1 || path === '') throw new ShowHelp();
  const config = await loadSandboxConfig(path, console);
  console.line(await runSandbox(await openCri(), config, flags.text('runtime'), cancelTimeout(flags)));
}

/** The images that a container needs: its own, and those that it mounts. Pure. */
export function imagesOf(config: ContainerConfig): string[] {
  const mounted = (config.mounts ?? []).map((mount) => mount.image?.image ?? '');
  return [config.image?.image ?? '', ...mounted].filter((image) => image !== '');
}

interface NewContainer {
  readonly pod: string;
  readonly config: ContainerConfig;
  readonly sandbox: PodSandboxConfig;
  readonly pulls: boolean;
}

async function createContainer(
  { flags, console, signal }: Invocation,
  cri: Cri,
  container: NewContainer,
): Promise<string> {
  const { config, sandbox } = container;
  if (container.pulls) {
    const auth = await pullAuth(flags, console);
    for (const image of imagesOf(config)) {
      console.log('INFO', `Pulling container image: ${image}`);
      const annotations = config.image?.annotations ?? {};
      await pullImage(cri, { image, annotations, auth, sandbox, timeoutMs: flags.number('pull-timeout') }, signal);
    }
  }
  const request = { pod_sandbox_id: container.pod, config, sandbox_config: sandbox };
  return (await cri.call('CreateContainer', request, cancelTimeout(flags))).container_id;
}

function pullFlags(flags: Flags, otherwise: boolean): boolean {
  const [no, yes] = [flags.bool('no-pull'), flags.bool('with-pull')];
  if (no && yes) throw new UserError('conflict: no-pull and with-pull are both set');
  return yes || (otherwise && !no);
}

export async function create(invocation: Invocation): Promise<void> {
  const { flags, args, settings, console, openCri } = invocation;
  const [pod, containerPath, sandboxPath] = args;
  if (pod === undefined || containerPath === undefined || sandboxPath === undefined || args.length > 3) {
    throw new ShowHelp();
  }
  const pulls = pullFlags(flags, settings.pullOnCreate);
  const creation = async (): Promise<string> => {
    const { config } = await loadContainerConfig(containerPath, console);
    const sandbox = await loadSandboxConfig(sandboxPath, console);
    return createContainer(invocation, await openCri(), { pod, config, sandbox, pulls });
  };
  console.line(await failed('creating container', creation()));
}

async function startContainer(cri: Cri, id: string, console: Console): Promise<void> {
  if (id === '') throw noIds();
  await failed(`starting the container "${id}"`, cri.call('StartContainer', { container_id: id }));
  console.line(id);
}

export async function start({ args, console, openCri }: Invocation): Promise<void> {
  if (args.length === 0) throw noIds();
  const cri = await openCri();
  for (const id of args) await startContainer(cri, id, console);
}

export async function run(invocation: Invocation): Promise<void> {
  const { flags, args, settings, console, openCri } = invocation;
  const [containerPath, sandboxPath] = args;
  if (containerPath === undefined || sandboxPath === undefined || args.length > 2) throw new ShowHelp();
  const pulls = pullFlags(flags, settings.pullOnRun);
  const running = async (): Promise<void> => {
    const sandbox = await loadSandboxConfig(sandboxPath, console);
    const { config } = await failed('creating container failed', loadContainerConfig(containerPath, console));
    const cri = await openCri();
    const pod = await runSandbox(cri, sandbox, flags.text('runtime'), cancelTimeout(flags));
    const id = await failed(
      'creating container failed',
      createContainer(invocation, cri, { pod, config, sandbox, pulls }),
    );
    await startContainer(cri, id, console);
  };
  await failed('running container', running());
}

/** Pure. Throws UserError for an --oom-score-adj that is no number. */
export function updateResources(flags: Flags): LinuxContainerResources {
  for (const name of ['cpu-count', 'cpu-maximum']) {
    if (flags.isSet(name)) throw new UserError(`--${name} is for Windows`);
  }
  const score = flags.text('oom-score-adj');
  if (!/^([+-]?\d+)?$/.test(score)) throw new UserError(`--oom-score-adj "${score}" is no number`);
  return {
    cpu_period: flags.number('cpu-period'),
    cpu_quota: flags.number('cpu-quota'),
    cpu_shares: flags.number('cpu-share'),
    cpuset_cpus: flags.text('cpuset-cpus'),
    cpuset_mems: flags.text('cpuset-mems'),
    memory_limit_in_bytes: flags.number('memory'),
    oom_score_adj: Number(score),
  };
}

export async function update({ flags, args, console, openCri }: Invocation): Promise<void> {
  if (args.length === 0) throw noIds();
  const linux = updateResources(flags);
  const cri = await openCri();
  for (const id of args) {
    const call = cri.call('UpdateContainerResources', { container_id: id, linux });
    await failed(`updating container resources for "${id}"`, call);
    console.line(id);
  }
}

async function stopContainer(cri: Cri, id: string, graceSeconds: number, console: Console): Promise<void> {
  const call = cri.call('StopContainer', { container_id: id, timeout: graceSeconds }, { graceSeconds });
  await failed(`stopping the container "${id}"`, call);
  console.line(id);
}

export async function stop({ flags, args, console, openCri }: Invocation): Promise<void> {
  const all = flags.bool('all');
  if (all && args.length > 0) throw new UserError('cannot specify CONTAINER-ID(s) when using --all');
  if (!all && args.length === 0) throw new UserError('you must specify at least one CONTAINER-ID or use --all');
  const cri = await openCri();
  let ids = args;
  if (all) {
    const filter = { state: { state: 'CONTAINER_RUNNING' } } as const;
    const { containers } = await failed('listing containers', cri.call('ListContainers', { filter }));
    ids = containers.map(({ id }) => id);
    if (ids.length === 0) return console.line('No running containers found.');
  }
  for (const id of ids) await stopContainer(cri, id, flags.number('timeout'), console);
}

/** A container's log and its rotated parts; one that cannot be removed is named. */
async function removeLogs(path: string, id: string, console: Console): Promise<void> {
  if (path === '') return;
  // What the path contains is no pattern.
  const literal = path.replace(/[\\*?[\]{}!()+@]/g, '\\$&');
  for await (const file of glob([literal, `${literal}.*`])) {
    try {
      await rm(file);
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'EACCES', 'EPERM', 'EBUSY', 'EROFS')) throw error;
      console.log('ERRO', `removing log file ${file} for container "${id}" failed: ${errorMessage(error)}`);
    }
  }
}

async function removeContainer(cri: Cri, id: string, flags: Flags, console: Console): Promise<void> {
  const status = await failed(
    `getting container status "${id}"`,
    cri.call('ContainerStatus', { container_id: id, verbose: false }),
  );
  if (status.status?.state === 'CONTAINER_RUNNING') {
    if (!flags.bool('force')) throw new UserError(`container "${id}" is running, please stop it first`);
    await stopContainer(cri, id, 0, console);
  }
  await failed(`removing container "${id}"`, cri.call('RemoveContainer', { container_id: id }));
  console.line(id);
  if (!flags.bool('keep-logs')) await removeLogs(status.status?.log_path ?? '', id, console);
}

export async function removeContainers({ flags, args, console, openCri }: Invocation): Promise<void> {
  const all = flags.bool('all');
  if (!all && args.length === 0) throw new ShowHelp();
  const cri = await openCri();
  const ids = all ? (await cri.call('ListContainers', {})).containers.map(({ id }) => id) : args;
  if (ids.length === 0) return console.log('INFO', 'No containers to remove');
  await allOf(ids.map((id) => () => removeContainer(cri, id, flags, console)));
}

async function stopSandbox(cri: Cri, id: string, doing: string, console: Console): Promise<void> {
  if (id === '') throw noIds();
  await failed(doing, cri.call('StopPodSandbox', { pod_sandbox_id: id }));
  console.line(`Stopped sandbox ${id}`);
}

export async function stopPods({ args, console, openCri }: Invocation): Promise<void> {
  if (args.length === 0) throw new ShowHelp();
  const cri = await openCri();
  for (const id of args) await stopSandbox(cri, id, `stopping the pod sandbox "${id}"`, console);
}

async function removeSandbox(cri: Cri, id: string, force: boolean, console: Console): Promise<void> {
  const { status } = await failed(
    `getting sandbox status of pod "${id}"`,
    cri.call('PodSandboxStatus', { pod_sandbox_id: id, verbose: false }),
  );
  if (status?.state === 'SANDBOX_READY') {
    if (!force) throw new UserError(`pod sandbox "${id}" is running, please stop it first`);
    await stopSandbox(cri, id, `stopping the pod sandbox "${id}" failed`, console);
  }
  await failed(`removing the pod sandbox "${id}"`, cri.call('RemovePodSandbox', { pod_sandbox_id: id }));
  console.line(`Removed sandbox ${id}`);
}

export async function removePods({ flags, args, console, openCri }: Invocation): Promise<void> {
  const all = flags.bool('all');
  if (!all && args.length === 0) throw new ShowHelp();
  const cri = await openCri();
  const ids = all ? (await cri.call('ListPodSandbox', {})).items.map(({ id }) => id) : args;
  if (ids.length === 0) return console.log('INFO', 'No pods to remove');
  await allOf(ids.map((id) => () => removeSandbox(cri, id, flags.bool('force'), console)));
}

export async function checkpoint({ flags, args, console, openCri }: Invocation): Promise<void> {
  if (args.length === 0) throw noIds();
  const location = flags.text('export');
  if (location === '') {
    throw new UserError(
      'cannot checkpoint a container without specifying the checkpoint destination. Use --export=/path/to/checkpoint.tar',
    );
  }
  const cri = await openCri();
  for (const id of args) {
    const call = cri.call('CheckpointContainer', { container_id: id, location, timeout: 0 });
    await failed(`checkpointing the container "${id}" failed`, call);
    console.line(id);
  }
}
