// Starts one container: image, environment, mounts, create, start, postStart hook. It decides nothing about whether or
// when; what goes wrong becomes an event and a waiting reason.

import type { ConfigMap, Container, EphemeralContainer, Pod, Secret } from '../../client/types.ts';
import { abortable } from '../../lib/abort.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { Gate } from '../../lib/gate.ts';
import type { EventRecorder, ObjectReader } from '../ports/api.ts';
import type { PodVolumes } from '../ports/node.ts';
import {
  type ContainerId,
  type ContainerMount,
  type ContainerRuntime,
  RuntimeError,
  type RuntimeImage,
} from '../ports/runtime.ts';
import type { WaitingReason } from './container-status.ts';
import { EnvironmentError, type EnvVar, environmentReferences, resolveEnvironment } from './environment.ts';
import { containerReference } from './events.ts';
import { rpcMessage } from './format.ts';
import type { RunHook } from './hooks.ts';
import { ImageError, type ImageManager } from './image-manager.ts';
import type { NodeFacts } from './options.ts';
import type { StartAction } from './pod-action.ts';
import { serviceEnvironment } from './service-environment.ts';

export interface ContainerStarterOptions {
  readonly runtime: Pick<ContainerRuntime, 'createContainer' | 'startContainer' | 'removeContainer'>;
  readonly volumes: Pick<PodVolumes, 'containerMounts'>;
  readonly objects: Pick<ObjectReader, 'configMap' | 'secret' | 'services'>;
  readonly recorder: EventRecorder;
  readonly images: Pick<ImageManager, 'ensure'>;
  readonly node: NodeFacts;
  readonly masterServiceNamespace: string;
  readonly runHook: RunHook;
}

export interface StartRequest {
  readonly pod: Pod;
  readonly action: StartAction;
  readonly podIPs: readonly string[];
  /** The container whose process namespace an ephemeral container joins, and its instance where there is one. */
  readonly target: { readonly name: string; readonly id: ContainerId | undefined } | undefined;
  readonly signal: AbortSignal;
  /** Called right before the container is created: from here on this counts as a start. */
  readonly onAttempt: () => void;
}

/** The container could not be started. */
export class StartError extends Error {
  override name = 'StartError';
  readonly waiting: WaitingReason;
  /** When another attempt makes sense (epoch ms), where that is known. */
  readonly retryAt: EpochMs | undefined;
  /** Set when it runs but its postStart hook failed: it must be stopped. */
  readonly started: ContainerId | undefined;
  constructor(waiting: WaitingReason, options: ErrorOptions & { retryAt?: EpochMs; started?: ContainerId } = {}) {
    super(waiting.message, options);
    this.waiting = waiting;
    this.retryAt = options.retryAt;
    this.started = options.started;
  }
}

type Failed = (reason: string, error: unknown, started?: ContainerId) => StartError;

/** From this size on (bytes) an environment is a big one: it comes from a large ConfigMap or Secret. */
const BIG_ENVIRONMENT_BYTES = 64 * 1024;
const BIG_ENVIRONMENTS_AT_ONCE = 4;

function environmentBytes(env: readonly EnvVar[]): number {
  return env.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
}

export class ContainerStarter {
  readonly #options: ContainerStarterOptions;
  readonly #bigEnvironments = new Gate(BIG_ENVIRONMENTS_AT_ONCE);

  constructor(options: ContainerStarterOptions) {
    this.#options = options;
  }

  /** Resolves with the id of the running container. Rejects with StartError, or with the signal's reason. */
  async start(request: StartRequest): Promise<ContainerId> {
    const { pod, action, signal } = request;
    const { runtime, recorder } = this.#options;
    const { container } = action;
    const reference = containerReference(pod, container.name);
    const failed: Failed = (reason, error, started) => {
      // The runtime's words without gRPC's frame, as the kubelet shows them.
      const message = error instanceof RuntimeError ? error.message : errorMessage(error);
      recorder.event(reference, 'Warning', 'Failed', `Error: ${message}`);
      return new StartError({ reason, message }, { cause: error, ...(started === undefined ? {} : { started }) });
    };
    await this.#removeSuperseded(request, failed);
    const id = action.created ?? (await this.#create(request, failed));
    signal.throwIfAborted();
    try {
      await runtime.startContainer(id);
    } catch (error) {
      throw failed('RunContainerError', error);
    }
    recorder.event(reference, 'Normal', 'Started', `Started container ${container.name}`);
    await this.#postStart(request, id);
    return id;
  }

  /** Containerd refuses this while a start of it is being executed: then another attempt comes later. */
  async #removeSuperseded({ action, signal }: StartRequest, failed: Failed): Promise<void> {
    const { superseded = [] } = action;
    if (superseded.length === 0) return;
    try {
      await Promise.all(superseded.map((id) => this.#options.runtime.removeContainer(id)));
    } catch (error) {
      throw failed('CreateContainerError', error);
    }
    signal.throwIfAborted();
  }

  async #create(request: StartRequest, failed: Failed): Promise<ContainerId> {
    const { target } = request;
    const image = await this.#image(request);
    if (target !== undefined && target.id === undefined) {
      throw failed('CreateContainerConfigError', new Error(`unable to find target container ${target.name}`));
    }
    const small = await this.#smallEnvironment(request, failed);
    if (small !== undefined) return await this.#createWith(request, image, small, failed);
    // A big one is dropped and built again when it is its turn: few are in memory at once.
    return await this.#bigEnvironments.run(async () => {
      const env = await this.#environment(request, failed);
      return await this.#createWith(request, image, env, failed);
    });
  }

  async #smallEnvironment(request: StartRequest, failed: Failed): Promise<readonly EnvVar[] | undefined> {
    const env = await this.#environment(request, failed);
    return environmentBytes(env) < BIG_ENVIRONMENT_BYTES ? env : undefined;
  }

  async #createWith(
    request: StartRequest,
    image: RuntimeImage,
    env: readonly EnvVar[],
    failed: Failed,
  ): Promise<ContainerId> {
    const { pod, action, target, signal } = request;
    const { runtime, recorder } = this.#options;
    const { container } = action;
    const mounts = await this.#mounts(request, env, failed);
    const volumes = await this.#withImages(request, mounts.mounts);
    signal.throwIfAborted();
    request.onAttempt();
    try {
      const id = await runtime.createContainer({
        pod,
        container,
        type: action.type,
        sandboxId: action.sandbox.id,
        restartCount: action.restartCount,
        hash: action.hash,
        image,
        podIPs: request.podIPs,
        env,
        ...mounts,
        mounts: volumes,
        ...(target?.id === undefined ? {} : { targetContainerId: target.id }),
      });
      const reference = containerReference(pod, container.name);
      recorder.event(reference, 'Normal', 'Created', `Created container: ${container.name}`);
      return id;
    } catch (error) {
      // What the adapter refuses to send is the pod's own mistake.
      const refused = error instanceof RuntimeError && error.call === 'GenerateContainerConfig';
      throw failed(refused ? 'CreateContainerConfigError' : 'CreateContainerError', error);
    }
  }

  #image(request: StartRequest): Promise<RuntimeImage> {
    return this.#pulled(request, request.action.container);
  }

  /** The images that are volumes of the container, on the machine; pulled as the container's own is. */
  async #withImages(request: StartRequest, mounts: readonly ContainerMount[]): Promise<readonly ContainerMount[]> {
    if (mounts.every(({ image }) => image === undefined)) return mounts;
    const { name } = request.action.container;
    return await Promise.all(
      mounts.map(async (mount) => {
        if (mount.image === undefined) return mount;
        const { reference, pullPolicy } = mount.image;
        const wanted = { name, image: reference, ...(pullPolicy === undefined ? {} : { imagePullPolicy: pullPolicy }) };
        const { id } = await this.#pulled(request, wanted);
        return { ...mount, image: { ...mount.image, id } };
      }),
    );
  }

  async #pulled(
    { pod, action, signal }: StartRequest,
    container: Container | EphemeralContainer,
  ): Promise<RuntimeImage> {
    try {
      return await this.#options.images.ensure(pod, container, signal);
    } catch (error) {
      if (!(error instanceof ImageError)) throw error;
      const reference = containerReference(pod, action.container.name);
      this.#options.recorder.event(reference, 'Warning', 'Failed', `Error: ${error.reason}`);
      const { reason, message, retryAt } = error;
      throw new StartError({ reason, message }, { cause: error, ...(retryAt === undefined ? {} : { retryAt }) });
    }
  }

  async #mounts({ pod, action, signal }: StartRequest, env: readonly EnvVar[], failed: Failed) {
    try {
      return await this.#options.volumes.containerMounts(pod, action.container, env);
    } catch (error) {
      if (signal.aborted) throw error;
      throw failed('CreateContainerConfigError', error);
    }
  }

  async #environment({ pod, action, podIPs, signal }: StartRequest, failed: Failed): Promise<readonly EnvVar[]> {
    try {
      return await abortable(this.#resolveEnvironment(pod, action.container, podIPs), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw failed('CreateContainerConfigError', error);
    }
  }

  async #resolveEnvironment(
    pod: Pod,
    container: Container | EphemeralContainer,
    podIPs: readonly string[],
  ): Promise<readonly EnvVar[]> {
    const { objects, node, masterServiceNamespace } = this.#options;
    const { namespace } = pod.metadata;
    const references = environmentReferences(container);
    const read = async <T>(names: ReadonlySet<string>, one: (name: string) => Promise<T | undefined>) => {
      const found = await Promise.all([...names].map(async (name) => [name, await one(name)] as const));
      return new Map(found.flatMap(([name, object]) => (object === undefined ? [] : [[name, object] as const])));
    };
    const links = pod.spec.enableServiceLinks !== false;
    const [configMaps, secrets, own, master] = await Promise.all([
      read<ConfigMap>(references.configMaps, (name) => objects.configMap(namespace, name)),
      read<Secret>(references.secrets, (name) => objects.secret(namespace, name)),
      links ? objects.services(namespace) : [],
      objects.services(masterServiceNamespace),
    ]).catch((error) => {
      throw new EnvironmentError(errorMessage(error), { cause: error });
    });
    return resolveEnvironment({
      pod,
      container,
      configMaps,
      secrets,
      services: serviceEnvironment(pod, own, master),
      podIPs,
      hostIPs: node.hostIPs(),
      allocatable: node.allocatable(),
    });
  }

  async #postStart({ pod, action, podIPs, signal }: StartRequest, id: ContainerId): Promise<void> {
    const { container } = action;
    const handler = 'lifecycle' in container ? container.lifecycle?.postStart : undefined;
    if (handler === undefined) return;
    const target = { pod, container, id, podIP: podIPs[0] };
    try {
      await this.#options.runHook('postStart', handler, target, Number.POSITIVE_INFINITY, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const reference = containerReference(pod, container.name);
      this.#options.recorder.event(reference, 'Warning', 'FailedPostStartHook', 'PostStartHook failed');
      throw new StartError({ reason: 'PostStartHookError', message: rpcMessage(error) }, { cause: error, started: id });
    }
  }
}
