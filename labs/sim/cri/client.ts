// CriClient of a simulated runtime: each method of CRI goes over the line, as the bytes that a real one would get, and
// does to the runtime what it is for. One for each life of the agent.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import type { CriClient, CriMethod, CriRequest, CriResponse, CriStream } from '../../../agent/runtime/cri-client.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { FilesystemUsage__Output } from '../../../proto/gen/runtime/v1/FilesystemUsage.ts';
import type { ImageServiceDefinition } from '../../../proto/gen/runtime/v1/ImageService.ts';
import type { RuntimeServiceDefinition } from '../../../proto/gen/runtime/v1/RuntimeService.ts';
import { loadProto } from '../../../proto/load.ts';
import type { UnaryOptions } from '../../../proto/unary.ts';
import type { SimDiskSpace } from '../disk-space.ts';
import type { CallOptions } from '../line.ts';
import { criError } from './errors.ts';
import { containerStatus, imageMessage, listedContainer, listedSandbox, sandboxStatus } from './messages.ts';
import type { SimCri } from './runtime.ts';
import { containerName, sandboxName } from './state.ts';

type Definitions = RuntimeServiceDefinition & ImageServiceDefinition;
/** A request as the far side reads it: with every field. */
type Received<M extends CriMethod> = Definitions[M] extends { requestDeserialize: (bytes: Buffer) => infer Request }
  ? Request
  : never;

interface Handler<M extends CriMethod> {
  /** What it is about, for the journal. */
  readonly subject: (request: Received<M>) => string;
  /** Checked when the call is made, whatever becomes of it. */
  readonly requested?: (request: Received<M>) => void;
  readonly options?: (request: Received<M>) => CallOptions;
  readonly effect: (request: Received<M>) => CriResponse<M> | Promise<CriResponse<M>>;
}
type Handlers = { readonly [M in CriMethod]?: Handler<M> };

const MAKING_MS = 200;

interface Codec {
  readonly requestSerialize: (value: unknown) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => unknown;
}

/** Of every method, made once: each call needs one. */
let codecs: Readonly<Record<string, Codec | undefined>> | undefined;

function codecOf(method: CriMethod): Codec {
  const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
  codecs ??= { ...RuntimeService.service, ...ImageService.service };
  const codec = codecs[method];
  if (codec === undefined) throw new Error(`CRI has no method ${method}`);
  return codec;
}

/**
 * Requests of the calls that the agent repeats all day, as the far side has read them, by method and content: the same bytes are
 * not encoded and read again. Their handlers only read.
 */
const POLLS: ReadonlyMap<CriMethod, Map<string, unknown>> = new Map(
  (['Status', 'ListPodSandbox', 'ListContainers', 'ListImages', 'ImageFsInfo', 'ListContainerStats'] as const).map(
    (method) => [method, new Map()],
  ),
);
/** Of one method: lists have a filter for each pod. */
const KEPT_POLLS = 256;

/** Over the wire and back. */
function received<M extends CriMethod>(method: M, request: CriRequest<M>): Received<M> {
  // The service's own definition says that this method's bytes are read as this type.
  const read = (): Received<M> => {
    const codec = codecOf(method);
    return codec.requestDeserialize(codec.requestSerialize(request)) as Received<M>;
  };
  const known = POLLS.get(method);
  if (known === undefined) return read();
  const key = JSON.stringify(request);
  const found = known.get(key);
  if (found !== undefined) return found as Received<M>;
  const first = read();
  if (known.size >= KEPT_POLLS) known.clear();
  known.set(key, first);
  return first;
}

export class SimCriClient implements CriClient {
  readonly #cri: SimCri;
  readonly #handlers: Handlers;
  readonly #streams = new Set<CriStream>();

  constructor(cri: SimCri) {
    this.#cri = cri;
    this.#handlers = handlersOf(cri);
  }

  readonly call = <M extends CriMethod>(
    method: M,
    request: CriRequest<M>,
    { deadlineMs, signal }: UnaryOptions = {},
  ): Promise<CriResponse<M>> => {
    const handlers: { readonly [K in CriMethod]?: Handler<K> } = this.#handlers;
    const handler: Handler<M> | undefined = handlers[method];
    if (handler === undefined) {
      return Promise.reject(new RuntimeError(method, 'UNIMPLEMENTED', `unknown method ${method}`));
    }
    const read = received(method, request);
    handler.requested?.(read);
    return this.#cri.line.perform(method, handler.subject(read), deadlineMs, () => handler.effect(read), {
      ...handler.options?.(read),
      ...(signal === undefined ? {} : { signal }),
    });
  };

  containerEvents(onEvent: Parameters<CriClient['containerEvents']>[0]): CriStream {
    return this.#keep(this.#cri.events.followCri(onEvent));
  }

  containerdEvents(filters: readonly string[], onEvent: Parameters<CriClient['containerdEvents']>[1]): CriStream {
    return this.#keep(this.#cri.events.followBus(filters, onEvent));
  }

  #keep(stream: CriStream): CriStream {
    this.#streams.add(stream);
    void stream.ended.then(() => this.#streams.delete(stream));
    return stream;
  }

  /** The connection is gone: no event comes any more. */
  close(): void {
    for (const stream of this.#streams) stream.cancel();
  }
}

type Labels = Readonly<Record<string, string>>;

function matches(labels: Labels, selector: Labels | undefined): boolean {
  return Object.entries(selector ?? {}).every(([key, value]) => getOwn(labels, key) === value);
}

function condition(type: string): { type: string; status: boolean; reason: string; message: string } {
  return { type, status: true, reason: '', message: '' };
}

/** Every method that the simulated runtime serves. */
function handlersOf(cri: SimCri): Handlers {
  return {
    ...nodeHandlers(cri),
    ...listHandlers(cri),
    ...sandboxHandlers(cri),
    ...containerHandlers(cri),
    ...imageHandlers(cri),
  };
}

function nodeHandlers({ kind }: SimCri): Handlers {
  const handlers: Handlers = {
    Version: {
      subject: () => '',
      effect: () => ({
        version: '0.1.0',
        runtime_name: 'containerd',
        runtime_version: kind.version,
        runtime_api_version: 'v1',
      }),
    },
    Status: {
      subject: () => '',
      effect: () => ({
        status: { conditions: [condition('RuntimeReady'), condition('NetworkReady')] },
        info: {},
        runtime_handlers: [],
        features: null,
      }),
    },
  };
  if (!kind.runtimeConfig) return handlers;
  return {
    ...handlers,
    RuntimeConfig: { subject: () => '', effect: () => ({ linux: { cgroup_driver: 'CGROUPFS' } }) },
  };
}

function listHandlers({ state, kind }: SimCri): Handlers {
  return {
    ListPodSandbox: {
      subject: () => '',
      effect: ({ filter }) => ({
        items: [...state.sandboxes()]
          .map(listedSandbox)
          .filter(({ labels }) => matches(labels, filter?.label_selector)),
      }),
    },
    ListContainers: {
      subject: () => '',
      effect: ({ filter }) => ({
        containers: [...state.instances()]
          .map(listedContainer)
          .filter(({ labels }) => matches(labels, filter?.label_selector)),
      }),
    },
    PodSandboxStatus: {
      subject: ({ pod_sandbox_id }) => pod_sandbox_id,
      effect: ({ pod_sandbox_id }) => {
        const sandbox = state.sandbox(pod_sandbox_id);
        if (sandbox === undefined) throw criError('PodSandboxStatus', 'NOT_FOUND', `no sandbox ${pod_sandbox_id}`);
        return { status: sandboxStatus(sandbox), info: {}, containers_statuses: [], timestamp: '0' };
      },
    },
    ContainerStatus: {
      subject: ({ container_id }) => container_id,
      effect: ({ container_id }) => {
        const instance = state.instance(container_id);
        if (instance === undefined) throw criError('ContainerStatus', 'NOT_FOUND', `no container ${container_id}`);
        return { status: containerStatus(instance, kind), info: {} };
      },
    },
  };
}

function sandboxHandlers(cri: SimCri): Handlers {
  return {
    RunPodSandbox: {
      subject: ({ config }) => `${config?.metadata?.name} ${config?.metadata?.attempt}`,
      options: ({ config }) => ({
        usualMs: MAKING_MS,
        claim: cri.state.claim(
          'RunPodSandbox',
          sandboxName(config?.metadata?.uid ?? '', config?.metadata?.attempt ?? 0),
        ),
      }),
      effect: async (request) => ({ pod_sandbox_id: await cri.runPodSandbox(request) }),
    },
    StopPodSandbox: {
      subject: ({ pod_sandbox_id }) => pod_sandbox_id,
      effect: async ({ pod_sandbox_id }) => {
        await cri.stopPodSandbox(pod_sandbox_id);
        return {};
      },
    },
    RemovePodSandbox: {
      subject: ({ pod_sandbox_id }) => pod_sandbox_id,
      effect: async ({ pod_sandbox_id }) => {
        await cri.removePodSandbox(pod_sandbox_id);
        return {};
      },
    },
  };
}

function containerHandlers(cri: SimCri): Handlers {
  return {
    CreateContainer: {
      subject: ({ config }) =>
        `${config?.labels['io.kubernetes.pod.name']}/${config?.metadata?.name} ${config?.metadata?.attempt}`,
      options: ({ config }) => ({
        usualMs: MAKING_MS,
        claim: cri.state.claim(
          'CreateContainer',
          containerName(
            config?.labels['io.kubernetes.pod.uid'] ?? '',
            config?.metadata?.name ?? '',
            config?.metadata?.attempt ?? 0,
          ),
        ),
      }),
      effect: async (request) => ({ container_id: await cri.createContainer(request) }),
    },
    StartContainer: {
      subject: ({ container_id }) => container_id,
      options: () => ({ usualMs: MAKING_MS }),
      effect: async ({ container_id }) => {
        await cri.startContainer(container_id);
        return {};
      },
    },
    StopContainer: {
      subject: ({ container_id, timeout }) => `${container_id} ${timeout}`,
      requested: ({ container_id }) => cri.timing.stopRequested(container_id),
      effect: async ({ container_id, timeout }) => {
        await cri.stopContainer(container_id, Number(timeout));
        return {};
      },
    },
    RemoveContainer: {
      subject: ({ container_id }) => container_id,
      requested: ({ container_id }) => cri.removalRequested(container_id),
      effect: async ({ container_id }) => {
        await cri.removeContainer(container_id);
        return {};
      },
    },
    UpdateContainerResources: {
      subject: ({ container_id }) => container_id,
      effect: ({ container_id, linux }) => {
        cri.updateContainerResources(container_id, linux);
        return {};
      },
    },
    ExecSync: {
      subject: ({ container_id, cmd }) => `${container_id} ${cmd.join(' ')}`,
      requested: ({ container_id, cmd }) => cri.timing.execRequested(container_id, cmd),
      effect: async ({ container_id, cmd, timeout }) => {
        const { stdout, stderr, exitCode } = await cri.execSync(container_id, cmd, Number(timeout));
        return { stdout, stderr, exit_code: exitCode };
      },
    },
    ReopenContainerLog: { subject: ({ container_id }) => container_id, effect: () => ({}) },
  };
}

function imageHandlers(cri: SimCri): Handlers {
  const { images, space } = cri;
  return {
    ImageStatus: {
      subject: ({ image }) => image?.image ?? '',
      effect: ({ image }) => {
        const found = images.find(image?.image ?? '');
        return { image: found === undefined ? null : imageMessage(found), info: {} };
      },
    },
    PullImage: {
      subject: ({ image }) => image?.image ?? '',
      effect: async ({ image }) => ({ image_ref: (await cri.pullImage(image?.image ?? '')).id }),
    },
    ListImages: { subject: () => '', effect: () => ({ images: [...images.held.values()].map(imageMessage) }) },
    RemoveImage: {
      subject: ({ image }) => image?.image ?? '',
      effect: ({ image }) => {
        images.remove(image?.image ?? '');
        return {};
      },
    },
    ImageFsInfo: {
      subject: () => '',
      // A machine whose disks are not counted does not say where images are: they count as the node's own disk.
      effect: () => {
        const place = space === undefined ? [] : [usedOn(space.imageRoot, space.imagesUse)];
        return { image_filesystems: place, container_filesystems: place };
      },
    },
    ...(space === undefined ? {} : statsHandlers(cri, space)),
  };
}

function usedOn(mountpoint: string, bytes: number): FilesystemUsage__Output {
  return { timestamp: '0', fs_id: { mountpoint }, used_bytes: { value: String(bytes) }, inodes_used: { value: '1' } };
}

/** Figures of containers, where the machine counts what they write. */
function statsHandlers({ state }: SimCri, space: SimDiskSpace): Handlers {
  return {
    ListContainerStats: {
      subject: () => '',
      effect: () => ({
        stats: [...state.instances()].map((instance) => ({
          attributes: {
            id: instance.id,
            metadata: instance.config.metadata,
            labels: instance.config.labels,
            annotations: instance.config.annotations,
          },
          cpu: null,
          memory: null,
          writable_layer: usedOn(space.imageRoot, space.layerBytes(instance.config)),
          swap: null,
          io: null,
        })),
      }),
    },
  };
}
