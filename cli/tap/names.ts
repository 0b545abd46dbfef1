// Which pod and container an id belongs to, learned from the calls themselves: what creates them and what lists them. Pure
// but for the table it keeps.

import { getOwn } from '../../lib/own-property.ts';
import type { Json, JsonMessage } from './wire.ts';

export interface PodName {
  /** "namespace/name" */
  readonly pod: string;
  readonly uid: string;
}

export interface ContainerName {
  readonly pod: string | undefined;
  readonly container: string;
}

/** What a call, or one message of a stream, is about. */
export interface Subject {
  readonly pod?: string;
  readonly container?: string;
}

/** Ids that are kept; the oldest go first. A node has at most some hundreds at a time. */
const MAX_IDS = 100_000;

export const isMessage = (value: Json | undefined): value is JsonMessage =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function messageIn(message: JsonMessage | undefined, name: string): JsonMessage | undefined {
  const value = getOwn(message, name);
  return isMessage(value) ? value : undefined;
}

export function textIn(message: JsonMessage | undefined, name: string): string | undefined {
  const value = getOwn(message, name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** PodSandboxMetadata has a namespace or a uid, ContainerMetadata neither. */
function podName(metadata: JsonMessage | undefined): PodName | undefined {
  const name = textIn(metadata, 'name');
  const namespace = textIn(metadata, 'namespace');
  const uid = textIn(metadata, 'uid');
  if (name === undefined || (namespace === undefined && uid === undefined)) return undefined;
  return { pod: `${namespace ?? ''}/${name}`, uid: uid ?? '' };
}

function podOfLabels(labels: JsonMessage | undefined): string | undefined {
  const name = textIn(labels, 'io.kubernetes.pod.name');
  const namespace = textIn(labels, 'io.kubernetes.pod.namespace');
  return name === undefined || namespace === undefined ? undefined : `${namespace}/${name}`;
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  if (map.size <= MAX_IDS) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

export class Names {
  readonly #sandboxes = new Map<string, PodName>();
  readonly #containers = new Map<string, ContainerName>();
  readonly #uids = new Map<string, string>();

  pod(sandboxId: string): string | undefined {
    return this.#sandboxes.get(sandboxId)?.pod;
  }

  container(id: string): ContainerName | undefined {
    return this.#containers.get(id);
  }

  /** "demo/web" or "demo/web web"; undefined for an id that no call has named. */
  describe(id: string): string | undefined {
    const container = this.#containers.get(id);
    if (container !== undefined) return `${container.pod ?? '?'} ${container.container}`;
    return this.pod(id);
  }

  learn(method: string, request: JsonMessage | undefined, response: JsonMessage | undefined): void {
    const config = messageIn(request, 'config');
    if (method === 'RunPodSandbox') {
      const pod = podName(messageIn(config, 'metadata'));
      const id = textIn(response, 'pod_sandbox_id');
      if (pod !== undefined && id !== undefined) this.#addSandbox(id, pod);
    } else if (method === 'CreateContainer') {
      const id = textIn(response, 'container_id');
      const container = textIn(messageIn(config, 'metadata'), 'name');
      const pod = podName(messageIn(messageIn(request, 'sandbox_config'), 'metadata'))?.pod;
      const sandbox = textIn(request, 'pod_sandbox_id');
      if (id !== undefined && container !== undefined)
        remember(this.#containers, id, {
          container,
          pod: pod ?? (sandbox === undefined ? undefined : this.pod(sandbox)),
        });
    } else if (response !== undefined) this.#learnFrom(response);
  }

  #addSandbox(id: string, pod: PodName): void {
    remember(this.#sandboxes, id, pod);
    if (pod.uid !== '') remember(this.#uids, pod.uid, pod.pod);
  }

  /** Lists and statuses: whatever has an id and metadata is a sandbox or a container. */
  #learnFrom(value: Json): void {
    if (Array.isArray(value)) {
      for (const each of value) this.#learnFrom(each);
      return;
    }
    if (!isMessage(value)) return;
    const id = textIn(value, 'id');
    const metadata = messageIn(value, 'metadata');
    const pod = podName(metadata);
    const name = textIn(metadata, 'name');
    if (id !== undefined && pod !== undefined) this.#addSandbox(id, pod);
    else if (id !== undefined && name !== undefined) {
      const sandbox = textIn(value, 'pod_sandbox_id');
      const named = podOfLabels(messageIn(value, 'labels')) ?? (sandbox === undefined ? undefined : this.pod(sandbox));
      remember(this.#containers, id, { container: name, pod: named ?? this.#containers.get(id)?.pod });
    }
    for (const each of Object.values(value)) if (typeof each === 'object') this.#learnFrom(each);
  }

  /** What a request, or a message of a stream of events, is about. */
  subject(message: JsonMessage | undefined): Subject {
    if (message === undefined) return {};
    const filter = messageIn(message, 'filter');
    const ids = [message, filter].flatMap((each) =>
      ['container_id', 'pod_sandbox_id', 'id'].map((name) => textIn(each, name)),
    );
    for (const id of ids) {
      if (id === undefined) continue;
      const container = this.#containers.get(id);
      if (container !== undefined)
        return { container: container.container, ...(container.pod === undefined ? {} : { pod: container.pod }) };
    }
    const config = messageIn(messageIn(message, 'config'), 'metadata');
    const known = ids.flatMap((id) => (id === undefined ? [] : (this.pod(id) ?? [])));
    const labels = messageIn(filter, 'label_selector');
    const pod =
      [message, messageIn(message, 'pod_sandbox_status')]
        .map((each) => podName(messageIn(each, 'metadata'))?.pod)
        .find((each) => each !== undefined) ??
      podName(config)?.pod ??
      podName(messageIn(messageIn(message, 'sandbox_config'), 'metadata'))?.pod ??
      known[0] ??
      podOfLabels(labels) ??
      this.#uids.get(textIn(labels, 'io.kubernetes.pod.uid') ?? '');
    const container = podName(config) === undefined ? textIn(config, 'name') : undefined;
    return { ...(pod === undefined ? {} : { pod }), ...(container === undefined ? {} : { container }) };
  }
}
