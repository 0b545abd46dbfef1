// The ContainerRuntime port over CRI: turns specs into configs, makes the files they name, calls the runtime, and
// reports failures in the runtime's words. Decides nothing about pods: when to do what is the worker's business.

import type { Pod } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { goQuote } from '../../lib/go-words.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import { podUID } from '../model/pod-uid.ts';
import type { ContainerId, ContainerSpec, PodRef, RuntimeImage, SandboxId, SandboxSpec } from '../ports/runtime.ts';
import { RuntimeError } from '../ports/runtime.ts';
import { readCgroupDriver } from './cgroup-driver.ts';
import { containerConfig, terminationPath } from './config/container-config.ts';
import { dnsWarnings, type ResolvConf } from './config/dns.ts';
import { podRefOf } from './config/labels.ts';
import type { IdRange } from './config/namespaces.ts';
import { podSandboxConfig } from './config/sandbox-config.ts';
import { runAsNonRootProblem } from './config/security.ts';
import { containerFileNames, containerId, madeSandbox, runtimeImage, runtimeStatus, sandboxId } from './convert.ts';
import { isRuntimeError, SHORT_DEADLINE_MS, STOP_MARGIN_MS } from './cri-client.ts';
import { LifecycleEvents } from './events/lifecycle-events.ts';
import { PodFiles } from './files.ts';
import { createCriClient } from './grpc-cri-client.ts';
import { Observer } from './observe.ts';
import type { CriRuntimeOptions } from './options.ts';
import { IdRegistry } from './registry.ts';
import type { CriRuntime } from './types.ts';
import { createRuntimeUsage } from './usage.ts';
import { userNamespace } from './userns.ts';

const DEFAULT_DEADLINE_MS = 120_000;

function refOf(pod: Pod): PodRef {
  return { uid: podUID(pod.metadata.uid), namespace: pod.metadata.namespace, name: pod.metadata.name };
}

/** Makes a config or a file; what goes wrong is the pod's or the node's fault, not the runtime's. */
function preparing<T>(call: string, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw asRuntimeError(call, error);
  }
}

/** The same for what takes more than one turn of the event loop. */
async function preparingInTurns<T>(call: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw asRuntimeError(call, error);
  }
}

function asRuntimeError(call: string, error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  return new RuntimeError(call, RuntimeError.NOT_CALLED, errorMessage(error), { cause: error });
}

/** The runtime need not be up: calls fail with UNAVAILABLE until it is. */
export function createCriRuntime(options: CriRuntimeOptions): CriRuntime {
  const { node, tracer, clock } = options;
  const deadlineMs = options.requestTimeoutMs ?? DEFAULT_DEADLINE_MS;
  const client = options.client ?? createCriClient(options.endpoint, options.imageEndpoint ?? options.endpoint, tracer);
  const { call } = client;
  const registry = new IdRegistry();
  const observer = new Observer(client, registry, clock, deadlineMs);
  const files = new PodFiles(node);
  const events = new LifecycleEvents({ ...options, client, observer, registry });

  /** Reasons of warnings about the node that have been told. */
  const warnedOfNode = new Set<string>();
  /** Containers that were created and not started yet. */
  const unlinked = new Map<ContainerId, { readonly name: string; readonly restartCount: number }>();
  /** The kubelet hands the sandbox's config over again with every container; it is made once per sandbox. */
  const sandboxConfigs = new Map<string, PodSandboxConfig>();

  async function userns(pod: Pod, handler: string): Promise<IdRange | undefined> {
    if (pod.spec.hostUsers !== false) return undefined;
    const { handlers } = runtimeStatus(await call('Status', {}, { deadlineMs: SHORT_DEADLINE_MS }));
    if (!handlers.some((known) => known.name === handler && known.userNamespaces)) {
      const who = handler === '' ? 'runtime' : `RuntimeClass handler ${goQuote(handler)}`;
      const problem = `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`;
      throw new RuntimeError('GeneratePodSandboxConfig', RuntimeError.NOT_CALLED, problem);
    }
    return userNamespace(node.rootDir, pod.metadata.uid);
  }

  async function sandboxConfig(pod: Pod, attempt: number, handler: string): Promise<PodSandboxConfig> {
    const block = await userns(pod, handler);
    return preparing('GeneratePodSandboxConfig', () => {
      const resolvConf = files.resolvConf();
      warn(pod, resolvConf);
      return podSandboxConfig(pod, attempt, { node, resolvConf, userns: block });
    });
  }

  /** Once per sandbox that is made; what is wrong with the node once at all. */
  function warn(pod: Pod, resolvConf: ResolvConf | undefined): void {
    const { onWarning } = options;
    if (onWarning === undefined) return;
    const warnings = dnsWarnings(pod, { servers: node.clusterDNS, domain: node.clusterDomain }, resolvConf);
    for (const { of, reason, message } of warnings) {
      if (of === 'node' && warnedOfNode.has(reason)) continue;
      if (of === 'node') warnedOfNode.add(reason);
      onWarning(of === 'node' ? 'node' : pod, reason, message);
    }
  }

  async function runPodSandbox(spec: SandboxSpec): Promise<SandboxId> {
    const pod = refOf(spec.pod);
    const config = await sandboxConfig(spec.pod, spec.attempt, spec.runtimeHandler);
    preparing('GeneratePodSandboxConfig', () => files.makeLogDirectory(pod));
    const askedAt = clock.now();
    // CNI plugins run inside this call: the kubelet gives it twice the ordinary deadline.
    const response = await call(
      'RunPodSandbox',
      { config, runtime_handler: spec.runtimeHandler },
      { deadlineMs: deadlineMs * 2, attributes: { attempt: spec.attempt } },
    ).catch((error: unknown) => {
      // There may never be a sandbox whose removal would take it along.
      preparing('RunPodSandbox', () => files.removeEmptyLogDirectory(pod));
      throw error;
    });
    const id = sandboxId(response.pod_sandbox_id);
    registry.learn(id, 'sandbox', pod);
    const made = madeSandbox(id, spec, options.addressesOf?.(id) ?? [], askedAt);
    if (made !== undefined) observer.made(made);
    sandboxConfigs.set(id, config);
    events.noteSandboxRunning(id, pod.uid);
    return id;
  }

  async function configOf(spec: ContainerSpec): Promise<PodSandboxConfig> {
    const known = sandboxConfigs.get(spec.sandboxId);
    if (known !== undefined) return known;
    // After a restart of the agent: the pod tells all but the attempt, and the runtime has its own copy of that.
    const response = await call(
      'PodSandboxStatus',
      { pod_sandbox_id: spec.sandboxId },
      { deadlineMs, attributes: { sandbox: spec.sandboxId } },
    );
    const attempt = response.status?.metadata?.attempt ?? 0;
    const config = await sandboxConfig(spec.pod, attempt, response.status?.runtime_handler ?? '');
    sandboxConfigs.set(spec.sandboxId, config);
    return config;
  }

  function blockOf(config: PodSandboxConfig): IdRange | undefined {
    const range = config.linux?.security_context?.namespace_options?.userns_options?.uids?.[0];
    if (range?.host_id === undefined || range.length === undefined) return undefined;
    return { hostId: range.host_id, length: range.length };
  }

  async function createContainer(spec: ContainerSpec) {
    const pod = refOf(spec.pod);
    const { container } = spec;
    let { restartCount } = spec;
    const problem = runAsNonRootProblem(spec.pod, container, spec.image);
    if (problem !== undefined) throw new RuntimeError('GenerateContainerConfig', RuntimeError.NOT_CALLED, problem);
    const sandbox_config = await configOf(spec);
    const config = preparing('GenerateContainerConfig', () => {
      const fromLogs = files.makeContainerLogDirectory(pod, container.name);
      // The runtime has forgotten its instances, and no API server is there that had their status.
      if (restartCount === 0) restartCount = fromLogs;
      return containerConfig(
        { ...spec, restartCount },
        {
          node,
          userns: blockOf(sandbox_config),
          files: {
            etcHosts: files.writeHosts(spec.pod, spec.podIPs),
            terminationLog:
              terminationPath(container) === undefined ? undefined : files.makeTerminationLog(pod.uid, container.name),
          },
        },
      );
    });
    const response = await call(
      'CreateContainer',
      { pod_sandbox_id: spec.sandboxId, config, sandbox_config },
      { deadlineMs, attributes: { container: container.name, sandbox: spec.sandboxId } },
    );
    const id = containerId(response.container_id);
    registry.learn(id, 'container', pod);
    unlinked.set(id, { name: container.name, restartCount });
    return id;
  }

  /** Links the log of a container where log shippers look. */
  async function linkLog(id: ContainerId): Promise<void> {
    const made = unlinked.get(id);
    unlinked.delete(id);
    const pod = registry.get(id)?.pod;
    if (made !== undefined && pod !== undefined) {
      preparing('StartContainer', () => files.linkLog(pod, made.name, id, made.restartCount));
      return;
    }
    // Made by an agent before this one.
    const status = await observer.readStatus(id);
    const owner = status === undefined ? undefined : podRefOf(status.labels);
    if (status === undefined || owner === undefined) return;
    const { name = '', attempt = 0 } = status.metadata ?? {};
    preparing('StartContainer', () => files.linkLog(owner, name, id, attempt));
  }

  /** Stop and remove of what is gone already have nothing left to do. */
  async function unlessGone(body: () => Promise<unknown>): Promise<void> {
    try {
      await body();
    } catch (error) {
      if (!isRuntimeError(error, 'NOT_FOUND')) throw error;
    }
  }

  /** Lets the runtime finish with what has just died of its own, before it is asked to do away with it. */
  async function settled(id: string): Promise<void> {
    const known = registry.get(id);
    if (known !== undefined) await events.deathsSettled(known.pod.uid, known.kind === 'container' ? id : undefined);
  }

  async function removeContainer(id: string): Promise<void> {
    await settled(id);
    const status = await observer.readStatus(id);
    const pod = registry.get(id)?.pod ?? (status === undefined ? undefined : podRefOf(status.labels));
    // Before the call: the runtime's event about it may come before its answer.
    events.noteRemoved(id);
    await unlessGone(() =>
      call('RemoveContainer', { container_id: id }, { deadlineMs, attributes: { container: id } }),
    );
    if (status !== undefined && pod !== undefined) {
      preparing('RemoveContainer', () => files.removeContainer(pod, containerFileNames(status)));
    }
    observer.forget(id);
    registry.forget(id);
    unlinked.delete(containerId(id));
  }

  async function removePodSandbox(id: string): Promise<void> {
    await settled(id);
    if (registry.get(id) === undefined) await observer.readSandboxReady(id);
    const known = registry.get(id);
    const last = known !== undefined && !registry.hasOtherSandbox(known.pod.uid, id);
    // The containers in it go with it; none of that is news to the worker that asked.
    const going = last ? registry.idsOf(known.pod.uid) : [id];
    for (const gone of going) events.noteRemoved(gone);
    await unlessGone(() =>
      call('RemovePodSandbox', { pod_sandbox_id: id }, { deadlineMs, attributes: { sandbox: id } }),
    );
    if (last) await preparingInTurns('RemovePodSandbox', () => files.removePod(known.pod));
    for (const gone of going) {
      observer.forget(gone);
      registry.forget(gone);
      unlinked.delete(containerId(gone));
    }
    sandboxConfigs.delete(id);
  }

  async function imageStatus(image: string): Promise<RuntimeImage | undefined> {
    const response = await call('ImageStatus', { image: { image } }, { deadlineMs, attributes: { image } });
    return response.image === null ? undefined : runtimeImage(response.image);
  }

  return {
    async version() {
      const response = await call('Version', { version: '0.1.0' }, { deadlineMs: SHORT_DEADLINE_MS });
      return {
        name: response.runtime_name,
        version: response.runtime_version,
        apiVersion: response.runtime_api_version,
      };
    },
    async status() {
      return runtimeStatus(await call('Status', {}, { deadlineMs: SHORT_DEADLINE_MS }));
    },

    listPods: () => observer.list(),
    observePod: (pod, since) => observer.observe(pod, since),

    runPodSandbox,
    async stopPodSandbox(id) {
      await settled(id);
      await unlessGone(() =>
        call('StopPodSandbox', { pod_sandbox_id: id }, { deadlineMs, attributes: { sandbox: id } }),
      );
    },
    removePodSandbox,

    createContainer,
    async startContainer(id) {
      const pod = registry.get(id)?.pod;
      if (pod !== undefined) events.noteContainerRunning(id, pod.uid);
      const starting = call('StartContainer', { container_id: id }, { deadlineMs, attributes: { container: id } });
      // Beside the call, which is the long one. A container that is not linked does not count as started.
      await Promise.all([starting, linkLog(id)]);
    },
    async stopContainer(id, graceSeconds) {
      await settled(id);
      if (observer.cached(id)?.state === 'exited') return;
      const timeout = Math.max(0, Math.ceil(graceSeconds));
      await unlessGone(() =>
        call(
          'StopContainer',
          { container_id: id, timeout },
          { deadlineMs: timeout * 1000 + STOP_MARGIN_MS, attributes: { container: id, grace: timeout } },
        ),
      );
    },
    removeContainer,
    async updateContainerResources(id, resources) {
      const linux = {
        ...(resources.cpuShares === undefined ? {} : { cpu_shares: resources.cpuShares }),
        ...(resources.cpuQuota === undefined ? {} : { cpu_quota: resources.cpuQuota }),
        ...(resources.cpuPeriod === undefined ? {} : { cpu_period: resources.cpuPeriod }),
        ...(resources.memoryLimitBytes === undefined ? {} : { memory_limit_in_bytes: resources.memoryLimitBytes }),
        ...(resources.oomScoreAdj === undefined ? {} : { oom_score_adj: resources.oomScoreAdj }),
      };
      await call(
        'UpdateContainerResources',
        { container_id: id, linux },
        { deadlineMs, attributes: { container: id } },
      );
      observer.forget(id);
    },

    imageStatus,
    async pullImage(image, auth, pod, signal) {
      // The pod has its sandbox already, and with it whatever block of ids it could be given.
      const block = pod.spec.hostUsers === false ? userNamespace(node.rootDir, pod.metadata.uid) : undefined;
      const sandbox_config = preparing('GeneratePodSandboxConfig', () =>
        podSandboxConfig(pod, 0, { node, resolvConf: files.resolvConf(), userns: block }),
      );
      const response = await call(
        'PullImage',
        {
          image: { image, annotations: { ...pod.metadata.annotations } },
          sandbox_config,
          ...(auth === undefined
            ? {}
            : {
                auth: {
                  username: auth.username ?? '',
                  password: auth.password ?? '',
                  auth: auth.auth ?? '',
                  server_address: auth.serverAddress ?? '',
                  identity_token: auth.identityToken ?? '',
                  registry_token: auth.registryToken ?? '',
                },
              }),
        },
        // No deadline: how long a pull takes is the image's affair, and the runtime gives up when nothing moves.
        { ...(signal === undefined ? {} : { signal }), attributes: { image } },
      );
      const pulled = (await imageStatus(response.image_ref)) ?? (await imageStatus(image));
      if (pulled === undefined) {
        throw new RuntimeError(
          'PullImage',
          'NOT_FOUND',
          `image "${image}" was pulled as "${response.image_ref}" and is gone`,
        );
      }
      return pulled;
    },
    async listImages() {
      const response = await call('ListImages', {}, { deadlineMs });
      return response.images.map(runtimeImage);
    },
    async removeImage(id) {
      await unlessGone(() => call('RemoveImage', { image: { image: id } }, { deadlineMs, attributes: { image: id } }));
    },
    async imageFsInfo() {
      const response = await call('ImageFsInfo', {}, { deadlineMs });
      return response.image_filesystems.map((usage) => ({
        mountpoint: usage.fs_id?.mountpoint ?? '',
        usedBytes: Number(usage.used_bytes?.value ?? 0),
        inodesUsed: Number(usage.inodes_used?.value ?? 0),
      }));
    },

    ...createRuntimeUsage(client, deadlineMs),

    async execSync(id, command, timeoutMs) {
      // CRI counts whole seconds, and kills the process when they are over.
      const timeout = Math.ceil(timeoutMs / 1000);
      try {
        const response = await call(
          'ExecSync',
          { container_id: id, cmd: [...command], timeout },
          {
            // The runtime answers first; this is for a runtime that does not.
            ...(timeoutMs === 0 ? {} : { deadlineMs: timeout * 1000 + SHORT_DEADLINE_MS }),
            attributes: { container: id, command: [...command] },
          },
        );
        return { stdout: response.stdout, stderr: response.stderr, exitCode: response.exit_code, timedOut: false };
      } catch (error) {
        if (timeoutMs === 0 || !isRuntimeError(error, 'DEADLINE_EXCEEDED')) throw error;
        return { stdout: Buffer.alloc(0), stderr: Buffer.from(error.message), exitCode: -1, timedOut: true };
      }
    },
    async execUrl(id, { command, ...streams }) {
      const request = { container_id: id, cmd: [...command], ...streams };
      return (await call('Exec', request, { deadlineMs, attributes: { container: id } })).url;
    },
    async attachUrl(id, streams) {
      const request = { container_id: id, ...streams };
      return (await call('Attach', request, { deadlineMs, attributes: { container: id } })).url;
    },
    async portForwardUrl(id, ports) {
      const request = { pod_sandbox_id: id, port: [...ports] };
      return (await call('PortForward', request, { deadlineMs, attributes: { sandbox: id } })).url;
    },
    async reopenContainerLog(id) {
      await call('ReopenContainerLog', { container_id: id }, { deadlineMs, attributes: { container: id } });
    },

    watch: (listener) => events.watch(listener),
    plegProblem: () => events.problem(),

    async capabilities() {
      const source = await events.settled();
      if (source === undefined) return undefined;
      try {
        return { events: source, cgroupDriver: await readCgroupDriver(client) };
      } catch (error) {
        if (isRuntimeError(error, 'UNAVAILABLE')) return undefined;
        throw error;
      }
    },
    async writeHostsFile(pod, podIPs) {
      preparing('WriteHostsFile', () => files.writeHosts(pod, podIPs));
    },
    containerLogPath: (pod, container, restartCount) => files.logPath(pod, container, restartCount),
    removePodFiles: (pod) => files.removePod(pod),
    close() {
      events.close();
      client.close();
    },
  };
}
