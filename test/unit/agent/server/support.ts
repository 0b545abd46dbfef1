// Pods, a runtime and a log reader for tests of the kubelet API, and a caller that speaks TLS to it.

import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { completeConfiguration } from '../../../../agent/config/kubelet-configuration.ts';
import type { AgentOptions } from '../../../../agent/config/options.ts';
import type { LogOptions, LogReader } from '../../../../agent/ports/logs.ts';
import type {
  ContainerId,
  ContainerSnapshot,
  PodSnapshot,
  PodUID,
  SandboxId,
} from '../../../../agent/ports/runtime.ts';
import type { KubeletServerOptions, ServedPods } from '../../../../agent/server/options.ts';
import type { Pod, PodStatus } from '../../../../client/types.ts';
import { epochMs } from '../../../../lib/clock.ts';

export const UID = 'uid-1' as PodUID;

export const POD: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'demo', uid: UID, resourceVersion: '1' },
  spec: { containers: [{ name: 'c', image: 'busybox' }] },
};

export function container(
  id: string,
  logPath: string,
  state: ContainerSnapshot['state'] = 'running',
): ContainerSnapshot {
  return {
    id: id as ContainerId,
    sandboxId: 'box' as SandboxId,
    name: 'c',
    type: 'container',
    restartCount: 0,
    hash: 'h',
    state,
    createdAt: epochMs(1),
    startedAt: epochMs(1),
    finishedAt: epochMs(0),
    exitCode: 0,
    reason: '',
    message: '',
    image: 'busybox',
    imageId: 'busybox@sha256:1',
    logPath,
  };
}

export const RUNNING: PodStatus = {
  phase: 'Running',
  containerStatuses: [
    {
      name: 'c',
      image: 'busybox',
      imageID: '',
      ready: true,
      restartCount: 0,
      containerID: 'containerd://abc',
      state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
    },
  ],
};

export class FakePods implements ServedPods {
  status: PodStatus | undefined = RUNNING;
  containers: ContainerSnapshot[] = [];
  getPod(namespace: string, name: string) {
    return namespace === 'demo' && name === 'web' ? POD : undefined;
  }
  listPods() {
    return [POD];
  }
  statusOf() {
    return this.status;
  }
  snapshotOf(): PodSnapshot {
    const sandbox = {
      id: 'box' as SandboxId,
      attempt: 0,
      createdAt: epochMs(1),
      ips: [],
      hostNetwork: false,
      runtimeHandler: '',
    };
    return {
      pod: { uid: UID, namespace: 'demo', name: 'web' },
      sandboxes: [{ ...sandbox, state: 'ready' }],
      containers: this.containers,
      observedAt: epochMs(1),
    };
  }
  containerIdFor(_namespace: string, _name: string, name: string) {
    return name === 'c' ? ('abc' as ContainerId) : undefined;
  }
}

/** Streams the given text and records its calls. */
export class FakeLogs implements LogReader {
  readonly requested: { path: string; options: LogOptions }[] = [];
  chunks: readonly string[] = ['one\n', 'two\n'];
  /** Goes on until the reader goes away. */
  endless = false;
  aborted = false;
  async *readLogs(
    path: string,
    options: LogOptions,
    _isRunning: () => boolean | Promise<boolean>,
    signal: AbortSignal,
  ) {
    this.requested.push({ path, options });
    for (const chunk of this.chunks) yield Buffer.from(chunk);
    if (!this.endless) return;
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    this.aborted = true;
  }
}

export class FakeRuntime implements Pick<KubeletServerOptions['runtime'], 'execUrl'> {
  url = 'http://127.0.0.1:1/exec/token';
  readonly requested: unknown[] = [];
  async execUrl(id: ContainerId, options: object) {
    this.requested.push({ exec: id, ...options });
    return this.url;
  }
  async attachUrl(id: ContainerId, options: object) {
    this.requested.push({ attach: id, ...options });
    return this.url;
  }
  async portForwardUrl(id: SandboxId, ports: readonly number[]) {
    this.requested.push({ portForward: id, ports });
    return this.url;
  }
  async listPods(): Promise<readonly PodSnapshot[]> {
    return [];
  }
  /** When the log of a container that has exited is complete. */
  written: Promise<void> = Promise.resolve();
  logWritten() {
    return this.written;
  }
}

/** The pages of figures, each with its own name as its content. */
export const PAGES: Pick<KubeletServerOptions, 'usage' | 'own' | 'nodeLogs'> = {
  nodeLogs: { directory: '/nowhere', exec: () => Promise.reject(new Error('there is no journal')) },
  usage: {
    summary: async (cpuAndMemory) => ({ summary: cpuAndMemory ? 'short' : 'whole' }),
    resource: async () => 'resource',
    cadvisor: async () => 'cadvisor',
  },
  own: { agent: async () => 'agent', probes: async () => 'probes' },
};

export function agentOptions(
  certDir: string,
  config: Readonly<Record<string, unknown>> = {},
): Pick<AgentOptions, 'nodeName' | 'nodeIPs' | 'certDir' | 'config'> {
  const complete = completeConfiguration({ address: '127.0.0.1', ...config }, 'test');
  // Port 0 asks the kernel for a free one; a configuration file may not.
  return { nodeName: 'node-1', nodeIPs: ['127.0.0.1'], certDir, config: { ...complete, port: 0 } };
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

export function ask(port: number, path: string, options: RequestOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false, ...options },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
        response.on('error', reject);
      },
    );
    call.on('error', reject);
    call.end();
  });
}
