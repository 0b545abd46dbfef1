// Containers: makes their configs and the files they name, calls CreateContainer, StartContainer, StopContainer,
// RemoveContainer and UpdateContainerResources, and passes the results to the cache. Decides nothing about pods.

import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { ContainerId, ContainerResourceFigures, ContainerSpec } from '../ports/runtime.ts';
import { RuntimeError } from '../ports/runtime.ts';
import { containerConfig, terminationPath } from './config/container-config.ts';
import { podRefOf } from './config/labels.ts';
import type { IdRange } from './config/namespaces.ts';
import { updatedResources } from './config/resources.ts';
import { runAsNonRootProblem } from './config/security.ts';
import type { RuntimeContext } from './context.ts';
import { containerFileNames, containerId, newContainer } from './convert.ts';
import { STOP_MARGIN_MS } from './cri-client.ts';
import { preparing, unlessGone } from './prepare.ts';
import { type PodSandboxes, refOf } from './sandboxes.ts';

function blockOf(config: PodSandboxConfig): IdRange | undefined {
  const range = config.linux?.security_context?.namespace_options?.userns_options?.uids?.[0];
  if (range?.host_id === undefined || range.length === undefined) return undefined;
  return { hostId: range.host_id, length: range.length };
}

export class Containers {
  readonly #context: RuntimeContext;
  readonly #sandboxes: PodSandboxes;

  constructor(context: RuntimeContext, sandboxes: PodSandboxes) {
    this.#context = context;
    this.#sandboxes = sandboxes;
  }

  async create(spec: ContainerSpec): Promise<ContainerId> {
    const { client, cache, clock, deadlineMs } = this.#context;
    const pod = refOf(spec.pod);
    const problem = runAsNonRootProblem(spec.pod, spec.container, spec.image);
    if (problem !== undefined) throw new RuntimeError('GenerateContainerConfig', RuntimeError.NOT_CALLED, problem);
    const sandbox_config = await this.#sandboxes.configOf(spec.sandboxId, spec.pod);
    const { config, restartCount } = preparing('GenerateContainerConfig', () => this.#config(spec, sandbox_config));
    const createdAt = clock.now();
    return await cache.during(async ({ seqBefore }) => {
      const response = await client
        .call(
          'CreateContainer',
          { pod_sandbox_id: spec.sandboxId, config, sandbox_config },
          { deadlineMs, attributes: { container: spec.container.name, type: spec.type, sandbox: spec.sandboxId } },
        )
        .catch((error: unknown) => {
          cache.apply({ kind: 'callFailed', call: 'CreateContainer', pod });
          throw error;
        });
      const id = containerId(response.container_id);
      const container = newContainer(id, { ...spec, restartCount }, createdAt);
      cache.apply({ kind: 'callDone', call: 'CreateContainer', seqBefore, pod, container });
      return id;
    });
  }

  #config(spec: ContainerSpec, sandbox: PodSandboxConfig) {
    const { node, files } = this.#context;
    const { container } = spec;
    const pod = refOf(spec.pod);
    const fromLogs = files.makeContainerLogDirectory(pod, container.name);
    // 0: the runtime has removed its instances, and no API server has their status.
    const restartCount = spec.restartCount === 0 ? fromLogs : spec.restartCount;
    const config = containerConfig(
      { ...spec, restartCount },
      {
        node,
        userns: blockOf(sandbox),
        files: {
          etcHosts: files.writeHosts(spec.pod, spec.podIPs),
          terminationLog:
            terminationPath(container) === undefined ? undefined : files.makeTerminationLog(pod.uid, container.name),
        },
      },
    );
    return { config, restartCount };
  }

  async start(id: ContainerId): Promise<void> {
    const { client, cache, deadlineMs } = this.#context;
    await this.#context.change('StartContainer', id, () => {
      const known = cache.container(id)?.snapshot;
      const which = known === undefined ? {} : { containerName: known.name, attempt: known.restartCount };
      const starting = client.call(
        'StartContainer',
        { container_id: id },
        { deadlineMs, attributes: { container: id, ...which } },
      );
      // Beside the call, which is the long one. A container that is not linked does not count as started.
      return Promise.all([starting, this.#linkLog(id)]);
    });
  }

  /** Links the log of a container in the directory of log shippers. */
  async #linkLog(id: ContainerId): Promise<void> {
    const { cache, files, statuses } = this.#context;
    // Made by an agent before this one, and not listed yet.
    if (cache.container(id) === undefined) await statuses.container(id);
    const record = cache.container(id);
    if (record === undefined) return;
    const { name, restartCount } = record.snapshot;
    preparing('StartContainer', () => files.linkLog(record.pod, name, id, restartCount));
  }

  /** Resolves when it is dead. */
  async stop(id: ContainerId, graceSeconds: number): Promise<void> {
    const { client, cache, exits } = this.#context;
    await exits.settled(id);
    if (cache.container(id)?.snapshot.state === 'exited') return;
    const timeout = Math.max(0, Math.ceil(graceSeconds));
    const call = (): Promise<unknown> =>
      unlessGone(() =>
        client.call(
          'StopContainer',
          { container_id: id, timeout },
          { deadlineMs: timeout * 1000 + STOP_MARGIN_MS, attributes: { container: id, grace: timeout } },
        ),
      );
    await this.#context.change('StopContainer', id, () => exits.stopping(id, call()));
  }

  /** Its files go with it. */
  async remove(id: string): Promise<void> {
    const { client, cache, deadlineMs, exits, files, statuses } = this.#context;
    await exits.settled(id);
    const status = await statuses.container(id);
    const pod = cache.get(id)?.pod ?? (status === undefined ? undefined : podRefOf(status.labels));
    await this.#context.change('RemoveContainer', id, () =>
      unlessGone(() =>
        client.call('RemoveContainer', { container_id: id }, { deadlineMs, attributes: { container: id } }),
      ),
    );
    if (status !== undefined && pod !== undefined) {
      preparing('RemoveContainer', () => files.removeContainer(pod, containerFileNames(status)));
    }
  }

  async updateResources(id: ContainerId, resources: ContainerResourceFigures): Promise<void> {
    const { client, node, deadlineMs } = this.#context;
    const linux = updatedResources(resources, node);
    await this.#context.change('UpdateContainerResources', id, () =>
      client.call(
        'UpdateContainerResources',
        { container_id: id, linux },
        { deadlineMs, attributes: { container: id } },
      ),
    );
  }
}
