// Ensures that an image is on the node before a container is created from it: pull policy, back-off, secrets, one pull
// per image at a time, events. It never removes an image.

import type { Container, EphemeralContainer, Pod, Secret } from '../../client/types.ts';
import { aggregate } from '../../lib/aggregate.ts';
import { type BackoffEntry, backoffRemaining, nextBackoff } from '../../lib/backoff.ts';
import { type Clock, type EpochMs, elapsedMs, plusMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { type ImageName, parseImageName, pullPolicyOf, withDefaultTag } from '../model/image-name.ts';
import type { EventRecorder, ObjectReader } from '../ports/api.ts';
import type { PullCredentials, RegistryCredential } from '../ports/pull-credentials.ts';
import { type ContainerRuntime, type ImageAuth, RuntimeError, type RuntimeImage } from '../ports/runtime.ts';
import { containerReference, podReference } from './events.ts';
import { goDuration, goQuote, rpcMessage } from './format.ts';
import { credentialsFor, parsePullSecret } from './image-credentials.ts';
import type { PodsConfig } from './options.ts';
import { PullQueue } from './pull-queue.ts';

/** Failures of a pull that CRI has names for; they become the container's waiting reason. */
type PullReason = 'RegistryUnavailable' | 'SignatureValidationFailed';
const PULL_REASONS: readonly (readonly [PullReason, string])[] = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
];

/** The runtime's words about a pull. "Unknown" adds nothing to them, so the kubelet leaves gRPC's frame out. */
function pullMessage(error: unknown): string {
  return error instanceof RuntimeError && error.code === 'UNKNOWN' ? error.message : rpcMessage(error);
}

function classifyPullFailure(image: string, failure: string): Pick<ImageError, 'reason' | 'message'> {
  for (const [reason, words] of PULL_REASONS) {
    if (!failure.startsWith(reason)) continue;
    return { reason, message: `image pull failed for ${image} because ${words}${failure.slice(reason.length)}` };
  }
  return { reason: 'ErrImagePull', message: failure };
}

/** The image is not there. `reason` and the message are the container's waiting state. */
export class ImageError extends Error {
  override name = 'ImageError';
  readonly reason:
    | 'InvalidImageName'
    | 'ImageInspectError'
    | 'ErrImageNeverPull'
    | 'ErrImagePull'
    | 'ImagePullBackOff'
    | PullReason;
  /** When another attempt makes sense (epoch ms); undefined leaves it to the caller. */
  readonly retryAt: EpochMs | undefined;
  constructor(reason: ImageError['reason'], message: string, retryAt?: EpochMs, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.retryAt = retryAt;
  }
}

export interface ImageManagerOptions {
  readonly runtime: Pick<ContainerRuntime, 'imageStatus' | 'pullImage'>;
  readonly objects: Pick<ObjectReader, 'secret'>;
  /** The node's own registry credentials. */
  readonly credentials?: PullCredentials | undefined;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly config: PodsConfig;
}

interface Failure extends BackoffEntry<EpochMs> {
  readonly at: EpochMs;
  readonly reason: string;
  readonly message: string;
}

export class ImageManager {
  readonly #options: ImageManagerOptions;
  readonly #queue: PullQueue<{ image: RuntimeImage; pullMs: number }>;
  /** By pod uid and image. */
  readonly #failures = new Map<string, Failure>();

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    const { serializeImagePulls, maxParallelImagePulls } = options.config;
    const limit = serializeImagePulls ? 1 : maxParallelImagePulls > 0 ? maxParallelImagePulls : Infinity;
    this.#queue = new PullQueue(limit);
  }

  /** Removes the back-off of a pod that is gone. */
  forget(podUID: string): void {
    for (const key of this.#failures.keys()) if (key.startsWith(`${podUID}_`)) this.#failures.delete(key);
  }

  /** The image to run the container from. Rejects with ImageError, or with the signal's reason when it aborts. */
  async ensure(pod: Pod, container: Container | EphemeralContainer, signal: AbortSignal): Promise<RuntimeImage> {
    const wanted = container.image ?? '';
    const event = this.#eventsOf(pod, container);
    const name = parseImageName(wanted);
    if ('error' in name) {
      const message = `Failed to apply default image tag ${goQuote(wanted)}: ${name.error}`;
      event('Warning', 'InspectFailed', message);
      throw new ImageError('InvalidImageName', message);
    }
    const image = withDefaultTag(wanted, name);
    const policy = pullPolicyOf(container.imagePullPolicy, name);
    if (policy !== 'Always') {
      const present = await this.#present(image, wanted, event);
      if (present !== undefined) {
        event('Normal', 'Pulled', `Container image ${goQuote(wanted)} already present on machine`);
        return present;
      }
      if (policy === 'Never') {
        const message = `Container image ${goQuote(wanted)} is not present with pull policy of Never`;
        event('Warning', 'ErrImageNeverPull', message);
        throw new ImageError('ErrImageNeverPull', message);
      }
    }
    return this.#pull(pod, wanted, image, name, event, signal);
  }

  #eventsOf(pod: Pod, container: Container | EphemeralContainer) {
    const reference = containerReference(pod, container.name);
    return (type: 'Normal' | 'Warning', reason: string, message: string): void =>
      this.#options.recorder.event(reference, type, reason, message);
  }

  async #present(
    image: string,
    wanted: string,
    event: (type: 'Normal' | 'Warning', reason: string, message: string) => void,
  ): Promise<RuntimeImage | undefined> {
    try {
      return await this.#options.runtime.imageStatus(image);
    } catch (error) {
      const message = `Failed to inspect image ${goQuote(wanted)}: ${rpcMessage(error)}`;
      event('Warning', 'InspectFailed', message);
      throw new ImageError('ImageInspectError', message, undefined, { cause: error });
    }
  }

  async #pull(
    pod: Pod,
    wanted: string,
    image: string,
    name: ImageName,
    event: (type: 'Normal' | 'Warning', reason: string, message: string) => void,
    signal: AbortSignal,
  ): Promise<RuntimeImage> {
    const { clock, config } = this.#options;
    const key = `${pod.metadata.uid}_${image}`;
    const failed = this.#failures.get(key);
    const remaining = failed === undefined ? 0 : backoffRemaining(failed, failed.at, clock.now());
    if (failed !== undefined && remaining > 0) {
      const message = `Back-off pulling image ${goQuote(wanted)}`;
      event('Normal', 'BackOff', message);
      const because = `${message}: ${failed.reason}: ${failed.message}`;
      throw new ImageError('ImagePullBackOff', because, plusMs(clock.now(), remaining));
    }
    event('Normal', 'Pulling', `Pulling image ${goQuote(wanted)}`);
    const began = clock.monotonic();
    try {
      const { image: pulled, pullMs } = await this.#pullWithAny(pod, image, await this.#auths(pod, name), signal);
      this.#failures.delete(key);
      const waited = goDuration(elapsedMs(began, clock.monotonic()));
      event(
        'Normal',
        'Pulled',
        `Successfully pulled image ${goQuote(wanted)} in ${goDuration(pullMs)} (${waited} including waiting). ` +
          `Image size: ${pulled.sizeBytes} bytes.`,
      );
      return pulled;
    } catch (error) {
      if (signal.aborted) throw error;
      const failure = errorMessage(error);
      event('Warning', 'Failed', `Failed to pull image ${goQuote(wanted)}: ${failure}`);
      const at = clock.now();
      const { reason, message } = classifyPullFailure(wanted, failure);
      const entry: Failure = { ...nextBackoff(config.imageBackoff, failed, at), at, reason, message };
      this.#failures.set(key, entry);
      throw new ImageError(reason, message, undefined, { cause: error });
    }
  }

  /** Tries each credential in turn, as the kubelet does; without any, the pull is anonymous. Rejects with all messages. */
  async #pullWithAny(
    pod: Pod,
    image: string,
    auths: readonly ImageAuth[],
    signal: AbortSignal,
  ): Promise<{ image: RuntimeImage; pullMs: number }> {
    const failures: unknown[] = [];
    for (const auth of auths.length === 0 ? [undefined] : auths) {
      try {
        return await this.#queue.pull(
          JSON.stringify([image, auth]),
          async (pullSignal) => {
            const started = this.#options.clock.monotonic();
            const pulled = await this.#options.runtime.pullImage(image, auth, pod, pullSignal);
            return { image: pulled, pullMs: this.#options.clock.monotonic() - started };
          },
          signal,
        );
      } catch (error) {
        if (signal.aborted) throw error;
        failures.push(error);
      }
    }
    throw new Error(aggregate(failures.map(pullMessage)), { cause: failures[0] });
  }

  async #auths(pod: Pod, name: ImageName): Promise<readonly ImageAuth[]> {
    const { namespace } = pod.metadata;
    const credentials: RegistryCredential[] = [];
    const missing: string[] = [];
    for (const reference of pod.spec.imagePullSecrets ?? []) {
      const secretName = reference.name ?? '';
      if (secretName === '') continue;
      let secret: Secret | undefined;
      try {
        secret = await this.#options.objects.secret(namespace, secretName);
        if (secret !== undefined) credentials.push(...parsePullSecret(secret));
      } catch (error) {
        // A secret that cannot be read or parsed leaves the others, and an anonymous pull, to be tried.
        this.#options.recorder.event(
          podReference(pod),
          'Warning',
          'FailedToRetrieveImagePullSecret',
          errorMessage(error),
        );
        continue;
      }
      if (secret === undefined) missing.push(secretName);
    }
    if (missing.length > 0) {
      this.#options.recorder.event(
        podReference(pod),
        'Warning',
        'FailedToRetrieveImagePullSecret',
        `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`,
      );
    }
    // The pod's own come first, as in the kubelet.
    const ofNode = await this.#options.credentials?.find(pod, `${name.registry}/${name.repository}`);
    return [...credentialsFor(name, credentials), ...credentialsFor(name, ofNode ?? [])];
  }
}
