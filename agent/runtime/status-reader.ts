// Reads the status of one container or sandbox from CRI and passes it to the cache, for every caller:
// no response of the runtime bypasses the cache. Reads a dead container's termination message along the way.

import type { ContainerStatus__Output } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { PodSandboxStatus__Output } from '../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import type { RuntimeCache } from './cache/runtime-cache.ts';
import { podRefOf } from './config/labels.ts';
import { fullContainer, sandboxDetail, sandboxSnapshot } from './convert.ts';
import { type CriClient, isRuntimeError } from './cri-client.ts';
import { terminationMessage } from './termination-message.ts';

/** What the runtime answers, or undefined when it does not know the id. */
async function unlessNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isRuntimeError(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}

export class StatusReader {
  readonly #client: CriClient;
  readonly #cache: RuntimeCache;
  readonly #deadlineMs: number;

  constructor(client: CriClient, cache: RuntimeCache, deadlineMs: number) {
    this.#client = client;
    this.#cache = cache;
    this.#deadlineMs = deadlineMs;
  }

  /** ContainerStatus; undefined when the runtime does not know the container. Rejects with RuntimeError. */
  container(id: string): Promise<ContainerStatus__Output | undefined> {
    return this.#cache.during(async ({ seqBefore }) => {
      const options = { deadlineMs: this.#deadlineMs, attributes: { container: id } };
      const response = await unlessNotFound(this.#client.call('ContainerStatus', { container_id: id }, options));
      const status = response?.status ?? undefined;
      const container = status === undefined ? undefined : this.full(status);
      this.#cache.apply({ kind: 'containerStatus', id, seqBefore, container });
      return status;
    });
  }

  /** A status as the cache takes it. Its sandbox is not in it, but may be known from elsewhere. */
  full(status: ContainerStatus__Output, sandbox = '') {
    return {
      pod: podRefOf(status.labels),
      snapshot: fullContainer(sandbox, status, this.#messageOf(status)),
      status,
    };
  }

  #messageOf(status: ContainerStatus__Output): string {
    if (status.state !== 'CONTAINER_EXITED') return status.message;
    return terminationMessage(status, { logIsComplete: true }) ?? '';
  }

  /** PodSandboxStatus; undefined when the runtime does not know the sandbox. Rejects with RuntimeError. */
  sandbox(id: string): Promise<PodSandboxStatus__Output | undefined> {
    return this.#cache.during(async ({ seqBefore }) => {
      const options = { deadlineMs: this.#deadlineMs, attributes: { sandbox: id } };
      const response = await unlessNotFound(this.#client.call('PodSandboxStatus', { pod_sandbox_id: id }, options));
      const status = response?.status ?? undefined;
      const sandbox =
        status === undefined
          ? undefined
          : { pod: podRefOf(status.labels), snapshot: sandboxSnapshot(status, sandboxDetail(status)) };
      this.#cache.apply({ kind: 'sandboxStatus', id, seqBefore, sandbox });
      return status;
    });
  }
}
