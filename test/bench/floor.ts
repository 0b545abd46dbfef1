// The floor: what containerd itself needs for the sequence that the agent sends, spoken straight over CRI from this
// process, with containerd running the conflist by itself. Nothing of the agent is involved, but its requests.

import { cpSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { isErrno } from '../../lib/errors.ts';
import { Tracer } from '../../lib/trace.ts';
import type { ContainerConfig } from '../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { RuntimeServiceClient } from '../../proto/gen/runtime/v1/RuntimeService.ts';
import { loadProto } from '../../proto/load.ts';
import { unaryCaller } from '../../proto/unary.ts';
import { type FloorTemplate, floorRequests, recordedInfo } from './floor-requests.ts';

export interface FloorPod {
  readonly name: string;
  readonly sandboxId: string;
  readonly containerId: string;
  /** From the first request to the last answer, in ms. */
  readonly durationMs: number;
}

export function connectRuntime(socket: string): RuntimeServiceClient {
  return new (loadProto('cri').runtime.v1.RuntimeService)(`unix://${socket}`, credentials.createInsecure());
}

/** What the containerd behind `socket` was asked for when it made this container and its sandbox. */
export async function readTemplate(socket: string, containerId: string): Promise<FloorTemplate> {
  const client = connectRuntime(socket);
  const call = unaryCaller(new Tracer(), 'cri');
  try {
    const container = await call(client, 'ContainerStatus', { container_id: containerId, verbose: true });
    const { config, sandboxID = '' } = recordedInfo<ContainerConfig>(container.info);
    const sandbox = await call(client, 'PodSandboxStatus', { pod_sandbox_id: sandboxID, verbose: true });
    return { sandbox: recordedInfo<PodSandboxConfig>(sandbox.info).config, container: config };
  } finally {
    client.close();
  }
}

/** Removes a cgroup from every hierarchy that has it: of v1 there are a dozen, of v2 one. */
function removeCgroup(path: string): void {
  const root = '/sys/fs/cgroup';
  for (const hierarchy of ['', ...readdirSync(root)]) {
    try {
      rmdirSync(join(root, hierarchy, path));
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    }
  }
}

export interface FloorOptions {
  /** containerd's. */
  readonly socket: string;
  /** Logs and the copies of what mounts show go below it. */
  readonly root: string;
  /** "/nodelet-floor": the pods' cgroups are made below it, as deep as the agent's, and removed with them. */
  readonly cgroupRoot: string;
  readonly tracer?: Tracer;
}

export class Floor {
  readonly #call;
  readonly #client: RuntimeServiceClient;
  readonly #options: FloorOptions;
  #sequence = 0;

  constructor(options: FloorOptions) {
    this.#options = options;
    this.#call = unaryCaller(options.tracer ?? new Tracer(), 'cri');
    this.#client = connectRuntime(options.socket);
  }

  #copyOf(hostPath: string): string {
    return join(this.#options.root, 'files', hostPath);
  }

  /** Copies what the template's mounts show, so that it outlives the template's pod. */
  keepFiles(template: FloorTemplate): void {
    for (const { host_path: path = '' } of template.container.mounts ?? []) {
      mkdirSync(dirname(this.#copyOf(path)), { recursive: true });
      cpSync(path, this.#copyOf(path), { recursive: true, verbatimSymlinks: true });
    }
  }

  /** RunPodSandbox, CreateContainer, StartContainer. */
  async start(template: FloorTemplate): Promise<FloorPod> {
    const name = `floor-${this.#sequence++}`;
    const logDirectory = join(this.#options.root, 'logs', name);
    const { sandboxConfig, config } = floorRequests(template, {
      name,
      logDirectory,
      cgroupRoot: this.#options.cgroupRoot,
      copyOf: (path) => this.#copyOf(path),
    });
    mkdirSync(join(logDirectory, dirname(config.log_path ?? '')), { recursive: true });
    const started = performance.now();
    const sandbox = await this.#call(this.#client, 'RunPodSandbox', { config: sandboxConfig });
    const container = await this.#call(this.#client, 'CreateContainer', {
      pod_sandbox_id: sandbox.pod_sandbox_id,
      sandbox_config: sandboxConfig,
      config,
    });
    await this.#call(this.#client, 'StartContainer', { container_id: container.container_id });
    return {
      name,
      sandboxId: sandbox.pod_sandbox_id,
      containerId: container.container_id,
      durationMs: performance.now() - started,
    };
  }

  /** StopContainer with grace 0, StopPodSandbox, RemovePodSandbox; returns ms. */
  async remove(pod: FloorPod): Promise<number> {
    const started = performance.now();
    await this.#call(this.#client, 'StopContainer', { container_id: pod.containerId, timeout: 0 });
    await this.#call(this.#client, 'StopPodSandbox', { pod_sandbox_id: pod.sandboxId });
    await this.#call(this.#client, 'RemovePodSandbox', { pod_sandbox_id: pod.sandboxId });
    const durationMs = performance.now() - started;
    removeCgroup(`${this.#options.cgroupRoot}/kubepods/besteffort/pod${pod.name}`);
    return durationMs;
  }

  close(): void {
    this.#client.close();
    for (const below of ['/kubepods/besteffort', '/kubepods', '']) removeCgroup(`${this.#options.cgroupRoot}${below}`);
  }
}
