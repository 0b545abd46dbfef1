// CRI's containers on Docker's. Nothing is kept here: labels say what CRI knows, Docker the rest. A container is started
// once and never again. What is written to its log is the business of logs/.

import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import type { ContainerInspectInfo } from 'dockerode';
import type { Clock } from '../lib/clock.ts';
import { isErrno } from '../lib/errors.ts';
import type { ContainerStatus } from '../proto/gen/runtime/v1/ContainerStatus.ts';
import type { Mount__Output } from '../proto/gen/runtime/v1/Mount.ts';
import type { Handlers, Received, Reply } from './cri-types.ts';
import type { Engine } from './engine.ts';
import { CriError, dockerStatus, invalid, isNotFound } from './errors.ts';
import { hasId, hasLabels } from './filters.ts';
import type { Images } from './images.ts';
import type { ContainerLogs } from './logs/container-logs.ts';
import type { OomKills } from './oom-kills.ts';
import { type ContainerRecord, decodeRecord, KIND_LABEL, SANDBOX_LABEL, type SandboxRecord } from './records.ts';
import { nanosAt } from './time.ts';
import { containerOptions } from './translate/container.ts';
import { containerState, containerStatus, listedContainer, listedState } from './translate/container-status.ts';
import type { DockerFacts } from './translate/facts.ts';
import { cgroupFiles, updatedResources } from './translate/resources.ts';
import { seccompFile } from './translate/security.ts';

export interface ContainersParts {
  readonly engine: Engine;
  readonly images: Images;
  readonly logs: ContainerLogs;
  readonly oomKills: OomKills;
  readonly facts: () => Promise<DockerFacts>;
  readonly clock: Clock;
}

export interface FoundContainer {
  readonly inspected: ContainerInspectInfo;
  readonly record: ContainerRecord;
}

const CGROUP_ROOT = '/sys/fs/cgroup';

/** A directory is made where there is nothing, as containerd does. */
async function ensureSource({ host_path }: Mount__Output): Promise<void> {
  try {
    await stat(host_path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
    await mkdir(host_path, { recursive: true, mode: 0o755 });
  }
}

export class Containers {
  readonly #parts: ContainersParts;

  constructor(parts: ContainersParts) {
    this.#parts = parts;
  }

  get handlers(): Handlers {
    return {
      CreateContainer: (request) => this.#create(request),
      StartContainer: ({ container_id }) => this.#start(container_id),
      StopContainer: ({ container_id, timeout }, signal) => this.#stop(container_id, Number(timeout), signal),
      RemoveContainer: ({ container_id }) => this.#remove(container_id),
      ListContainers: (request) => this.#list(request),
      ContainerStatus: (request) => this.#status(request),
      UpdateContainerResources: (request) => this.#update(request),
      ReopenContainerLog: (request) => this.#reopenLog(request),
    };
  }

  /** By id or the beginning of one. Undefined for what is no container of CRI's. */
  async find(id: string): Promise<FoundContainer | undefined> {
    if (id === '') throw invalid('container_id', 'missing');
    try {
      const inspected = await this.#parts.engine.inspect(id);
      const record = decodeRecord(inspected.Config.Labels);
      return record?.kind === 'container' ? { inspected, record } : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async require(id: string): Promise<FoundContainer> {
    const found = await this.find(id);
    if (found !== undefined) return found;
    throw new CriError('NOT_FOUND', `an error occurred when try to find container "${id}": not found`);
  }

  /** Rejects unless the container runs. */
  async requireRunning(id: string): Promise<FoundContainer> {
    const found = await this.require(id);
    const state = containerState(found.inspected.State);
    if (state === 'CONTAINER_RUNNING') return found;
    throw new CriError('FAILED_PRECONDITION', `container is in ${state} state`);
  }

  /** The whole log of a container that is shown as exited has been written. */
  async statusOf({ inspected, record }: FoundContainer): Promise<ContainerStatus> {
    const { logs, oomKills } = this.#parts;
    if (containerState(inspected.State) !== 'CONTAINER_EXITED') return containerStatus(inspected, record, false);
    const oomKilled = await oomKills.wasKilled(record.sandboxId, inspected.Id);
    await logs.drained(inspected.Id);
    return containerStatus(inspected, record, oomKilled);
  }

  /** Of one sandbox, in every state. */
  async statusesOf(sandboxId: string): Promise<readonly ContainerStatus[]> {
    const ids = await this.#idsOf(sandboxId);
    const found = await Promise.all(ids.map((id) => this.find(id)));
    return Promise.all(found.filter((each) => each !== undefined).map((each) => this.statusOf(each)));
  }

  async #idsOf(sandboxId: string): Promise<readonly string[]> {
    const listed = await this.#parts.engine.list([`${KIND_LABEL}=container`, `${SANDBOX_LABEL}=${sandboxId}`]);
    return listed.map(({ Id }) => Id);
  }

  async stopAllOf(sandboxId: string): Promise<void> {
    const signal = new AbortController().signal;
    await Promise.all((await this.#idsOf(sandboxId)).map((id) => this.#stop(id, 0, signal)));
  }

  async removeAllOf(sandboxId: string): Promise<void> {
    await Promise.all((await this.#idsOf(sandboxId)).map((id) => this.#remove(id)));
  }

  async #sandbox(id: string): Promise<{ readonly id: string; readonly record: SandboxRecord }> {
    let inspected: ContainerInspectInfo;
    try {
      inspected = await this.#parts.engine.inspect(id);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new CriError('NOT_FOUND', `failed to find sandbox id "${id}": not found`, { cause: error });
    }
    const record = decodeRecord(inspected.Config.Labels);
    if (record?.kind !== 'sandbox') throw new CriError('NOT_FOUND', `failed to find sandbox id "${id}": not found`);
    return { id: inspected.Id, record };
  }

  async #create({
    pod_sandbox_id,
    config,
    sandbox_config,
  }: Received<'CreateContainer'>): Promise<Reply<'CreateContainer'>> {
    if (config === null) throw invalid('config', 'missing');
    const { engine, images, facts, clock } = this.#parts;
    const sandbox = await this.#sandbox(pod_sandbox_id);
    const image = await images.find(config.image?.image ?? '');
    const file = seccompFile(config.linux?.security_context ?? null);
    const options = containerOptions(config, sandbox_config, {
      facts: await facts(),
      sandboxId: sandbox.id,
      sandbox: sandbox.record,
      imageId: image.id,
      imageRef: image.ref,
      createdAt: nanosAt(clock),
      ...(file === undefined ? {} : { seccomp: await readFile(file, 'utf8') }),
    });
    await Promise.all(config.mounts.map(ensureSource));
    const { id } = await engine
      .call('ContainerCreate', { container: options.name }, (docker) => docker.createContainer(options))
      .catch((error: unknown) => {
        if (!(error instanceof CriError) || dockerStatus(error.cause) !== 409) throw error;
        const message = `failed to reserve container name "${options.name}": ${error.message}`;
        throw new CriError('UNKNOWN', message, { cause: error });
      });
    return { container_id: id };
  }

  async #start(requested: string): Promise<Reply<'StartContainer'>> {
    const { engine, logs, oomKills } = this.#parts;
    const { inspected, record } = await this.require(requested);
    const { Id: id, State: before } = inspected;
    const state = containerState(before);
    // Docker would start one again that has ended.
    if (state !== 'CONTAINER_CREATED') throw new CriError('FAILED_PRECONDITION', `container is in ${state} state`);
    await oomKills.starting(record.sandboxId, id);
    await engine.call('ContainerStart', { container: id }, (docker) => docker.getContainer(id).start());
    logs.follow(id, record, inspected.Config.Tty);
    await this.#writeCgroupFiles(id, record);
    return {};
  }

  /** What Docker has no option for (cgroup v2). A process that has ended already needs none. */
  async #writeCgroupFiles(id: string, record: ContainerRecord): Promise<void> {
    const files = cgroupFiles(record.resources);
    if (files.size === 0) return;
    const { State: state } = await this.#parts.engine.inspect(id);
    if (!state.Running) return;
    const own = await readFile(`/proc/${state.Pid}/cgroup`, 'utf8');
    const path = /^0::(\/.*)$/m.exec(own)?.[1];
    if (path === undefined) throw new CriError('UNKNOWN', `container ${id} has no cgroup of version 2`);
    for (const [name, value] of files) await writeFile(`${CGROUP_ROOT}${path}/${name}`, value);
  }

  /** `seconds` until SIGKILL; 0 is at once. One that does not run, or is not there, is stopped. */
  async #stop(requested: string, seconds: number, signal: AbortSignal): Promise<Reply<'StopContainer'>> {
    const found = await this.find(requested);
    if (found === undefined || !found.inspected.State.Running) return {};
    const { Id: id } = found.inspected;
    try {
      if (seconds <= 0) {
        await this.#parts.engine.call('ContainerKill', { container: id }, (docker) =>
          docker.getContainer(id).kill({ signal: 'SIGKILL' }),
        );
        await this.#parts.engine.call('ContainerWait', { container: id }, (docker) =>
          docker.getContainer(id).wait({ abortSignal: signal }),
        );
      } else {
        await this.#parts.engine.call('ContainerStop', { container: id, seconds }, (docker) =>
          docker.getContainer(id).stop({ t: seconds, abortSignal: signal }),
        );
      }
    } catch (error) {
      // It ended by itself (Docker: 304 or 409), or is gone.
      if (!(error instanceof CriError)) throw error;
      if (!['NOT_FOUND', 'FAILED_PRECONDITION'].includes(error.code) && dockerStatus(error.cause) !== 304) throw error;
    }
    return {};
  }

  async #remove(requested: string): Promise<Reply<'RemoveContainer'>> {
    const found = await this.find(requested);
    if (found === undefined) return {};
    const { Id: id, State: state } = found.inspected;
    const { sandboxId } = found.record;
    if (state.Running) await this.#stop(id, 0, new AbortController().signal);
    // Docker's copy of the output goes with the container.
    await this.#parts.logs.drained(id);
    try {
      await this.#parts.engine.call('ContainerDelete', { container: id }, (docker) =>
        docker.getContainer(id).remove({ force: true, v: true }),
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#parts.logs.forget(id);
    await this.#parts.oomKills.forgetContainer(sandboxId, id);
    return {};
  }

  async #list({ filter }: Received<'ListContainers'>): Promise<Reply<'ListContainers'>> {
    const listed = await this.#parts.engine.list([`${KIND_LABEL}=container`]);
    const containers = await Promise.all(
      listed.map(async ({ Id, Labels, State, ImageID }) => {
        const record = decodeRecord(Labels);
        if (record?.kind !== 'container') return undefined;
        if (!hasId(Id, filter?.id) || !hasId(record.sandboxId, filter?.pod_sandbox_id)) return undefined;
        if (!hasLabels(record.labels, filter?.label_selector)) return undefined;
        // Only an inspection tells one that could not be started from one that was not.
        const state =
          State === 'created'
            ? ((await this.find(Id).then((found) => found && containerState(found.inspected.State))) ??
              'CONTAINER_EXITED')
            : listedState(State);
        if (filter?.state != null && filter.state.state !== state) return undefined;
        return listedContainer(Id, record, ImageID, state);
      }),
    );
    return { containers: containers.filter((each) => each !== undefined) };
  }

  async #status({ container_id, verbose }: Received<'ContainerStatus'>): Promise<Reply<'ContainerStatus'>> {
    const found = await this.require(container_id);
    const { inspected, record } = found;
    const info = {
      sandboxID: record.sandboxId,
      pid: inspected.State.Pid,
      removing: inspected.State.Status === 'removing',
      docker: { Name: inspected.Name, HostConfig: inspected.HostConfig, Config: inspected.Config },
    };
    return { status: await this.statusOf(found), info: verbose ? { info: JSON.stringify(info) } : {} };
  }

  async #update({
    container_id,
    linux,
  }: Received<'UpdateContainerResources'>): Promise<Reply<'UpdateContainerResources'>> {
    const { inspected, record } = await this.require(container_id);
    if (linux === null) return {};
    const facts = await this.#parts.facts();
    const files = cgroupFiles(linux);
    const changes = updatedResources(linux, facts);
    if (Object.keys(changes).length > 0) {
      await this.#parts.engine.call('ContainerUpdate', { container: inspected.Id }, (docker) =>
        docker.getContainer(inspected.Id).update(changes),
      );
    }
    if (inspected.State.Running && files.size > 0) {
      await this.#writeCgroupFiles(inspected.Id, { ...record, resources: linux });
    }
    if (inspected.State.Running && linux.oom_score_adj !== '0') {
      const score = Math.max(Number(linux.oom_score_adj), facts.minOomScoreAdj);
      await writeFile(`/proc/${inspected.State.Pid}/oom_score_adj`, String(score));
    }
    return {};
  }

  async #reopenLog({ container_id }: Received<'ReopenContainerLog'>): Promise<Reply<'ReopenContainerLog'>> {
    const { inspected } = await this.requireRunning(container_id);
    await this.#parts.logs.reopen(inspected.Id);
    return {};
  }
}
