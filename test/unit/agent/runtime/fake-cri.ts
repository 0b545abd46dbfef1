// A CRI runtime in memory, served over gRPC on a unix socket: what it knows is set by the test, and what it does not
// implement answers UNIMPLEMENTED, as an older runtime's would.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import type { Container } from '../../../../proto/gen/runtime/v1/Container.ts';
import type { ContainerStatus } from '../../../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { PodSandbox } from '../../../../proto/gen/runtime/v1/PodSandbox.ts';
import type { PodSandboxStatus } from '../../../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import { loadProto } from '../../../../proto/load.ts';

type Stream = ServerWritableStream<unknown, unknown>;

class Failure {
  readonly code: number;
  readonly details: string;
  constructor(code: number, details: string) {
    this.code = code;
    this.details = details;
  }
}

function notFound(what: string): Failure {
  return new Failure(status.NOT_FOUND, `an error occurred when try to find ${what}: not found`);
}

export class FakeCri {
  readonly socket: string;
  readonly sandboxes = new Map<string, PodSandbox & { status?: Partial<PodSandboxStatus> }>();
  readonly containers = new Map<string, ContainerStatus & { pod_sandbox_id: string }>();
  /** Names of the calls made, in order. */
  readonly calls: string[] = [];
  /** The newest request of each call. */
  readonly requests = new Map<string, Record<string, unknown>>();
  /** Which streams are served. */
  readonly serves: { cri: boolean; containerd: boolean };
  /** Answers to calls of these names are kept back until then; they show the state at the time of the call. */
  readonly retained = new Map<string, Promise<void>>();
  /** Calls of these names fail with this gRPC status, after having done what they do. */
  readonly failing = new Map<string, number>();
  /** The response of RuntimeConfig; undefined: UNIMPLEMENTED. */
  cgroupDriver: 'SYSTEMD' | 'CGROUPFS' | undefined;
  readonly streams: { cri: Stream[]; containerd: Stream[] } = { cri: [], containerd: [] };
  readonly #directory: string;
  #server: Server | undefined;

  private constructor(directory: string, serves: { cri: boolean; containerd: boolean }) {
    this.#directory = directory;
    this.socket = join(directory, 'cri.sock');
    this.serves = serves;
  }

  static async start(serves = { cri: false, containerd: true }): Promise<FakeCri> {
    const fake = new FakeCri(await mkdtemp(join(tmpdir(), 'nodelet-fakecri-')), serves);
    await fake.listen();
    return fake;
  }

  /** Adds a ready sandbox of the pod. */
  addSandbox(id: string, uid: string, detail: Partial<PodSandboxStatus> = {}): void {
    this.sandboxes.set(id, {
      id,
      metadata: { name: `pod-${uid}`, uid, namespace: 'ns', attempt: 0 },
      state: 'SANDBOX_READY',
      created_at: '1000000000',
      labels: podLabels(uid),
      status: { network: { ip: '10.0.0.9' }, ...detail },
    });
  }

  addContainer(id: string, uid: string, sandbox: string, overrides: ContainerStatus = {}): void {
    this.containers.set(id, {
      id,
      pod_sandbox_id: sandbox,
      metadata: { name: 'main', attempt: 0 },
      state: 'CONTAINER_RUNNING',
      created_at: '2000000000',
      started_at: '3000000000',
      labels: { ...podLabels(uid), 'io.kubernetes.container.name': 'main' },
      annotations: { 'io.kubernetes.container.restartCount': '0', 'io.kubernetes.container.hash': 'h' },
      ...overrides,
    });
  }

  /** Changes a container's status. */
  set(id: string, change: ContainerStatus): void {
    const known = this.containers.get(id);
    if (known === undefined) throw new Error(`no container ${id}`);
    this.containers.set(id, { ...known, ...change });
  }

  async listen(): Promise<void> {
    const server = new Server();
    const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
    server.addService(ImageService.service, this.#images());
    const { Events } = loadProto('containerd-events').containerd.services.events.v1;
    server.addService(RuntimeService.service, {
      ...this.#unary(),
      ...(this.serves.cri ? { GetContainerEvents: this.#stream('cri') } : {}),
    });
    if (this.serves.containerd) server.addService(Events.service, { Subscribe: this.#stream('containerd') });
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.socket}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }

  /** The runtime dies: connections break, the socket is gone. */
  async crash(): Promise<void> {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.streams.cri = [];
    this.streams.containerd = [];
    await rm(this.socket, { force: true });
  }

  async stop(): Promise<void> {
    await this.crash();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #stream(kind: 'cri' | 'containerd'): UntypedHandleCall {
    return (call: Stream) => {
      this.streams[kind].push(call);
    };
  }

  #handler(name: string, answer: (request: Record<string, unknown>) => object): UntypedHandleCall {
    return (call: ServerUnaryCall<Record<string, unknown>, object>, callback: sendUnaryData<object>) => {
      this.calls.push(name);
      this.requests.set(name, call.request);
      const result = answer(call.request);
      const send = (): void => {
        const failing = this.failing.get(name);
        if (failing !== undefined) callback({ code: failing, details: `${name} failed` });
        else if (result instanceof Failure) callback({ code: result.code, details: result.details });
        else callback(null, result);
      };
      const retained = this.retained.get(name);
      if (retained === undefined) send();
      else void retained.then(send);
    };
  }

  /** Every image can be had. */
  #images(): Record<string, UntypedHandleCall> {
    return {
      PullImage: this.#handler('PullImage', () => ({ image_ref: 'sha256:feed' })),
      ImageStatus: this.#handler('ImageStatus', () => ({
        image: { id: 'sha256:feed', repo_tags: [], repo_digests: [] },
      })),
    };
  }

  /** Calls that change what runs; each does at once what it says. */
  #changes(): Record<string, UntypedHandleCall> {
    return {
      CreateContainer: this.#handler('CreateContainer', (request) => {
        const id = `container-${this.containers.size}`;
        const sandbox = String(request['pod_sandbox_id']);
        const attempt = Number(field(request, 'config', 'metadata', 'attempt'));
        const name = String(field(request, 'config', 'metadata', 'name'));
        this.addContainer(id, this.sandboxes.get(sandbox)?.metadata?.uid ?? '', sandbox, {
          metadata: { name, attempt },
          state: 'CONTAINER_CREATED',
          started_at: '0',
        });
        return { container_id: id };
      }),
      StartContainer: this.#handler('StartContainer', (request) => {
        this.set(String(request['container_id']), { state: 'CONTAINER_RUNNING', started_at: '3000000000' });
        return {};
      }),
      StopContainer: this.#handler('StopContainer', (request) => {
        const id = String(request['container_id']);
        if (this.containers.get(id)?.state === 'CONTAINER_RUNNING') {
          this.set(id, { state: 'CONTAINER_EXITED', exit_code: 143, reason: 'Error', finished_at: '4000000000' });
        }
        return {};
      }),
      RemoveContainer: this.#handler('RemoveContainer', (request) => {
        this.containers.delete(String(request['container_id']));
        return {};
      }),
      UpdateContainerResources: this.#handler('UpdateContainerResources', () => ({})),
      StopPodSandbox: this.#handler('StopPodSandbox', (request) => {
        const id = String(request['pod_sandbox_id']);
        const known = this.sandboxes.get(id);
        if (known !== undefined) this.sandboxes.set(id, { ...known, state: 'SANDBOX_NOTREADY' });
        return {};
      }),
      RemovePodSandbox: this.#handler('RemovePodSandbox', (request) => {
        const id = String(request['pod_sandbox_id']);
        this.sandboxes.delete(id);
        for (const [container, { pod_sandbox_id }] of this.containers) {
          if (pod_sandbox_id === id) this.containers.delete(container);
        }
        return {};
      }),
    };
  }

  #unary(): Record<string, UntypedHandleCall> {
    const selected = (
      request: Record<string, unknown>,
      labels: Readonly<Record<string, string>> | undefined,
    ): boolean => {
      const filter: unknown = request['filter'];
      const selector: unknown =
        typeof filter === 'object' && filter !== null ? Reflect.get(filter, 'label_selector') : undefined;
      return Object.entries(selector ?? {}).every(([key, value]) => labels?.[key] === value);
    };
    return {
      Version: this.#handler('Version', () => ({
        runtime_name: 'fake',
        runtime_version: '1',
        runtime_api_version: 'v1',
      })),
      RuntimeConfig: this.#handler('RuntimeConfig', () =>
        this.cgroupDriver === undefined
          ? new Failure(status.UNIMPLEMENTED, 'unknown method RuntimeConfig for service runtime.v1.RuntimeService')
          : { linux: { cgroup_driver: this.cgroupDriver } },
      ),
      ListPodSandbox: this.#handler('ListPodSandbox', (request) => ({
        items: [...this.sandboxes.values()].filter((item) => selected(request, item.labels)),
      })),
      ListContainers: this.#handler('ListContainers', (request) => ({
        containers: [...this.containers.values()]
          .filter((item) => selected(request, item.labels))
          .map((item): Container => ({ ...item, image: null })),
      })),
      RunPodSandbox: this.#handler('RunPodSandbox', (request) => {
        const id = `made-${this.sandboxes.size}`;
        const metadata: unknown = Reflect.get(Object(request['config']), 'metadata');
        this.addSandbox(id, String(Reflect.get(Object(metadata), 'uid')));
        return { pod_sandbox_id: id };
      }),
      ...this.#changes(),
      PodSandboxStatus: this.#handler('PodSandboxStatus', (request) => {
        const sandbox = this.sandboxes.get(String(request['pod_sandbox_id']));
        return sandbox === undefined ? notFound('sandbox') : { status: { ...sandbox, ...sandbox.status } };
      }),
      ContainerStatus: this.#handler('ContainerStatus', (request) => {
        const container = this.containers.get(String(request['container_id']));
        return container === undefined ? notFound('container') : { status: container };
      }),
    };
  }
}

/** A field of a request at some depth; undefined where there is none. */
function field(request: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => Reflect.get(Object(value), key), request);
}

export function podLabels(uid: string): Record<string, string> {
  return { 'io.kubernetes.pod.uid': uid, 'io.kubernetes.pod.name': `pod-${uid}`, 'io.kubernetes.pod.namespace': 'ns' };
}
