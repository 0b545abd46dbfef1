// The floor: what containerd itself needs for the sequence a kubelet sends, spoken straight over CRI from this process,
// with containerd running the conflist by itself. Nothing of the agent is involved.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { Tracer } from '../../lib/trace.ts';
import { loadProto } from '../../proto/load.ts';
import { unaryCaller } from '../../proto/unary.ts';

export interface FloorPod {
  readonly sandboxId: string;
  readonly containerId: string;
  /** From the first request to the last answer, in ms. */
  readonly durationMs: number;
}

export class Floor {
  readonly #call = unaryCaller(new Tracer(), 'cri');
  readonly #client;
  readonly #logRoot: string;
  readonly #cgroupParent: string;
  readonly #image: string;
  #sequence = 0;

  /** `socket` is containerd's; `cgroupParent` a cgroup that exists or that runc may make. */
  constructor(options: { socket: string; logRoot: string; cgroupParent: string; image: string }) {
    const { runtime } = loadProto('cri');
    this.#client = new runtime.v1.RuntimeService(`unix://${options.socket}`, credentials.createInsecure());
    this.#logRoot = options.logRoot;
    this.#cgroupParent = options.cgroupParent;
    this.#image = options.image;
  }

  /** RunPodSandbox, CreateContainer, StartContainer. */
  async start(command: readonly string[]): Promise<FloorPod> {
    const name = `floor-${this.#sequence++}`;
    const logDirectory = join(this.#logRoot, name);
    mkdirSync(join(logDirectory, 'main'), { recursive: true });
    const sandboxConfig = {
      metadata: { name, uid: `${name}-uid`, namespace: 'bench', attempt: 0 },
      hostname: name,
      log_directory: logDirectory,
      labels: { 'io.kubernetes.pod.name': name },
      linux: {
        cgroup_parent: this.#cgroupParent,
        security_context: { namespace_options: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } },
      },
    } as const;
    const started = performance.now();
    const sandbox = await this.#call(this.#client, 'RunPodSandbox', { config: sandboxConfig });
    const container = await this.#call(this.#client, 'CreateContainer', {
      pod_sandbox_id: sandbox.pod_sandbox_id,
      sandbox_config: sandboxConfig,
      config: {
        metadata: { name: 'main', attempt: 0 },
        image: { image: this.#image },
        command: [...command],
        log_path: 'main/0.log',
        linux: {
          resources: { cpu_shares: 2, oom_score_adj: 1000 },
          security_context: { namespace_options: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } },
        },
      },
    });
    await this.#call(this.#client, 'StartContainer', { container_id: container.container_id });
    return {
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
    return performance.now() - started;
  }

  close(): void {
    this.#client.close();
  }
}
