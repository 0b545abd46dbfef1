// CRI's pod sandboxes: a pause container of Docker and its network by CNI. Crash-only: what a sandbox is, is in Docker's
// labels, and whether its network stands in CNI's cache; nothing is kept here.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { ContainerInspectInfo } from 'dockerode';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { PodSandboxConfig__Output } from '../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { PodSandboxStatus } from '../proto/gen/runtime/v1/PodSandboxStatus.ts';
import type { Containers } from './containers.ts';
import type { Handlers, Received, Reply } from './cri-types.ts';
import type { Engine } from './engine.ts';
import { CriError, dockerStatus, invalid, isNotFound } from './errors.ts';
import { hasId, hasLabels } from './filters.ts';
import type { Images } from './images.ts';
import type { SandboxNetwork } from './network.ts';
import type { OomKills } from './oom-kills.ts';
import { decodeRecord, KIND_LABEL, type SandboxRecord } from './records.ts';
import { nanosAt } from './time.ts';
import type { DockerFacts } from './translate/facts.ts';
import {
  isHostNetwork,
  isRunning,
  listedSandbox,
  resolvConf,
  sandboxOptions,
  sandboxRecord,
  sandboxState,
  sandboxStatus,
} from './translate/sandbox.ts';
import { seccompFile } from './translate/security.ts';

export interface SandboxesParts {
  readonly engine: Engine;
  readonly network: SandboxNetwork;
  readonly images: Images;
  readonly containers: Containers;
  readonly oomKills: OomKills;
  readonly facts: () => Promise<DockerFacts>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A sandbox as Docker has it now. */
export interface FoundSandbox {
  readonly inspected: ContainerInspectInfo;
  readonly record: SandboxRecord;
}

/** The network namespace's path; '' when it is gone. */
function netnsOf({ NetworkSettings: settings }: ContainerInspectInfo): string {
  const key: unknown = Reflect.get(settings, 'SandboxKey');
  return typeof key === 'string' ? key : '';
}

export class Sandboxes {
  readonly #parts: SandboxesParts;

  constructor(parts: SandboxesParts) {
    this.#parts = parts;
  }

  get handlers(): Handlers {
    return {
      RunPodSandbox: (request, signal) => this.#run(request, signal),
      StopPodSandbox: ({ pod_sandbox_id }) => this.#stop(pod_sandbox_id),
      RemovePodSandbox: ({ pod_sandbox_id }) => this.#remove(pod_sandbox_id),
      PodSandboxStatus: (request) => this.#status(request),
      ListPodSandbox: (request) => this.#list(request),
    };
  }

  /** By id or the beginning of one. Undefined for what is no sandbox. */
  async find(id: string): Promise<FoundSandbox | undefined> {
    if (id === '') throw invalid('pod_sandbox_id', 'missing');
    try {
      const inspected = await this.#parts.engine.inspect(id);
      const record = decodeRecord(inspected.Config.Labels);
      return record?.kind === 'sandbox' ? { inspected, record } : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async require(id: string): Promise<FoundSandbox> {
    const found = await this.find(id);
    if (found !== undefined) return found;
    throw new CriError('NOT_FOUND', `an error occurred when try to find sandbox: not found: "${id}"`);
  }

  statusOf({ inspected, record }: FoundSandbox): PodSandboxStatus {
    const addresses = this.#parts.network.addresses(inspected.Id);
    const state = sandboxState(isRunning(inspected), isHostNetwork(record), addresses !== undefined);
    return sandboxStatus(inspected.Id, record, state, addresses ?? []);
  }

  async #run(
    { config, runtime_handler }: Received<'RunPodSandbox'>,
    signal: AbortSignal,
  ): Promise<Reply<'RunPodSandbox'>> {
    if (config === null) throw invalid('config', 'missing');
    const { engine, images, facts, clock } = this.#parts;
    const file = seccompFile(
      config.linux?.security_context == null ? null : { ...config.linux.security_context, privileged: false },
    );
    const context = {
      facts: await facts(),
      image: await images.sandboxImage(signal),
      runtimeHandler: runtime_handler,
      createdAt: nanosAt(clock),
      ...(file === undefined ? {} : { seccomp: await readFile(file, 'utf8') }),
    };
    const options = sandboxOptions(config, context);
    const record = sandboxRecord(config, context);
    if (config.log_directory !== '') await mkdir(config.log_directory, { recursive: true, mode: 0o755 });
    const attributes = { sandbox: options.name };
    const { id } = await engine
      .call('ContainerCreate', attributes, (docker) => docker.createContainer(options))
      .catch((error: unknown) => {
        if (!(error instanceof CriError) || dockerStatus(error.cause) !== 409) throw error;
        throw new CriError('UNKNOWN', `failed to reserve sandbox name "${options.name}": ${error.message}`, {
          cause: error,
        });
      });
    try {
      await this.#start(id, config, record);
      return { pod_sandbox_id: id };
    } catch (error) {
      await this.#giveUp(id);
      throw error;
    }
  }

  async #start(id: string, config: PodSandboxConfig__Output, record: SandboxRecord): Promise<void> {
    const { engine, network, oomKills, facts } = this.#parts;
    await engine.call('ContainerStart', { container: id }, (docker) => docker.getContainer(id).start());
    const inspected = await engine.inspect(id);
    // Without a cgroup of its own the pod shares one with others.
    const hasCgroup = (config.linux?.cgroup_parent ?? '') !== '';
    if (hasCgroup && (await facts()).cgroupVersion === 2) await oomKills.sandboxStarted(id, inspected.State.Pid);
    // In place: it is mounted by its inode.
    const text = resolvConf(config.dns_config) ?? (await readFile('/etc/resolv.conf', 'utf8'));
    await writeFile(inspected.ResolvConfPath, text);
    if (!isHostNetwork(record)) await network.attach(id, netnsOf(inspected), record, config.dns_config);
  }

  /** What cannot be removed now stays as a sandbox that is not ready, for the kubelet to remove. */
  async #giveUp(id: string): Promise<void> {
    try {
      await this.#remove(id);
    } catch (error) {
      if (!(error instanceof CriError)) throw error;
      this.#parts.log('warn', 'a sandbox that could not be set up remains', {
        sandbox: id,
        error: errorMessage(error),
      });
    }
  }

  async #stop(id: string): Promise<Reply<'StopPodSandbox'>> {
    const found = await this.find(id);
    if (found === undefined) return {};
    const { engine, network, containers } = this.#parts;
    const { inspected, record } = found;
    await containers.stopAllOf(inspected.Id);
    if (!isHostNetwork(record)) {
      await network.detach(inspected.Id, isRunning(inspected) ? netnsOf(inspected) : '', record);
    }
    if (!isRunning(inspected)) return {};
    try {
      await engine.call('ContainerKill', { container: inspected.Id }, (docker) =>
        docker.getContainer(inspected.Id).kill({ signal: 'SIGKILL' }),
      );
      await engine.call('ContainerWait', { container: inspected.Id }, (docker) =>
        docker.getContainer(inspected.Id).wait(),
      );
    } catch (error) {
      // It ended by itself, or another caller removed it.
      if (!(error instanceof CriError) || !['NOT_FOUND', 'FAILED_PRECONDITION'].includes(error.code)) throw error;
    }
    return {};
  }

  async #remove(id: string): Promise<Reply<'RemovePodSandbox'>> {
    const found = await this.find(id);
    if (found === undefined) return {};
    await this.#stop(found.inspected.Id);
    await this.#parts.containers.removeAllOf(found.inspected.Id);
    await this.#parts.engine.call('ContainerDelete', { container: found.inspected.Id }, async (docker) => {
      try {
        await docker.getContainer(found.inspected.Id).remove({ force: true, v: true });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    });
    await this.#parts.oomKills.forgetSandbox(found.inspected.Id);
    return {};
  }

  async #status({ pod_sandbox_id, verbose }: Received<'PodSandboxStatus'>): Promise<Reply<'PodSandboxStatus'>> {
    const found = await this.require(pod_sandbox_id);
    const { inspected } = found;
    const info = { pid: inspected.State.Pid, processStatus: inspected.State.Status, image: inspected.Config.Image };
    return {
      status: this.statusOf(found),
      info: verbose ? { info: JSON.stringify({ ...info, runtimeHandler: found.record.runtimeHandler }) } : {},
    };
  }

  async #list({ filter }: Received<'ListPodSandbox'>): Promise<Reply<'ListPodSandbox'>> {
    const listed = await this.#parts.engine.list([`${KIND_LABEL}=sandbox`]);
    const attached = this.#parts.network.attached();
    const items = listed.flatMap(({ Id, Labels, State }) => {
      const record = decodeRecord(Labels);
      if (record?.kind !== 'sandbox') return [];
      const state = sandboxState(State === 'running', isHostNetwork(record), attached.has(Id));
      if (!hasId(Id, filter?.id) || !hasLabels(record.labels, filter?.label_selector)) return [];
      if (filter?.state != null && filter.state.state !== state) return [];
      return [listedSandbox(Id, record, state)];
    });
    return { items };
  }

  /** At the start: attachments whose sandbox is gone are undone, and what is kept of it is removed. */
  async collectGarbage(): Promise<void> {
    const { engine, network, oomKills, log } = this.#parts;
    await oomKills.collectGarbage(async () => (await engine.list([`${KIND_LABEL}=sandbox`])).map(({ Id }) => Id));
    const listed = await engine.list([`${KIND_LABEL}=sandbox`]);
    for (const error of await network.collectGarbage(new Set(listed.map(({ Id }) => Id)))) {
      log('warn', 'an attachment of a sandbox that is gone could not be undone', { error: error.message });
    }
  }
}
