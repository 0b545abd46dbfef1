// The Node's status: building it from facts and health, comparing it with the last one, and the patch that writes
// it. Pure.

import type { ContainerImage, NodeStatus } from 'kubernetes-types/core/v1';
import type { MonotonicMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import type { RuntimeImage, RuntimeStatus, RuntimeVersion } from '../ports/runtime.ts';
import { nodeAddresses } from './addresses.ts';
import { allocatableOf, capacityOf } from './capacity.ts';
import { type NodeHealth, type NodePressure, nextConditions } from './conditions.ts';
import type { MachineFacts } from './facts.ts';
import type { NodeConfig } from './options.ts';

/** The kubelet's limit on names of one image. */
const MAX_NAMES_PER_IMAGE = 5;

/** NodeStatus with the fields that are newer than the typings. */
export type FullNodeStatus = NodeStatus & {
  runtimeHandlers?: { name: string; features: { recursiveReadOnlyMounts: boolean; userNamespaces: boolean } }[];
  features?: { supplementalGroupsPolicy: boolean };
};

/** What a status is made of, but for the last one and the time. */
export interface StatusFacts {
  readonly nodeName: string;
  readonly nodeIPs: readonly string[];
  readonly kubeletPort: number;
  readonly kubeletVersion: string;
  readonly config: NodeConfig;
  readonly facts: MachineFacts;
  readonly health: NodeHealth;
  readonly pressure: NodePressure;
  /** The runtime's last Version response; undefined before the first. */
  readonly runtimeVersion?: RuntimeVersion | undefined;
  readonly runtimeStatus?: RuntimeStatus | undefined;
  readonly images: readonly RuntimeImage[];
  /** Attachable volumes that the node uses. */
  readonly volumesInUse?: readonly string[];
}

export interface StatusInput extends StatusFacts {
  /** RFC 3339, whole seconds. */
  readonly now: string;
}

/** A status that was compared with what it would be now, and was the same. */
export interface ComparedStatus {
  readonly status: NodeStatus | undefined;
  readonly facts: StatusFacts;
}

/** Whether the comparison would come out as before: the same status (the object itself), and the same facts. */
export function wasCompared(before: ComparedStatus | undefined, status: NodeStatus | undefined, facts: StatusFacts) {
  return before !== undefined && before.status === status && sameJson(before.facts, facts);
}

/** The status after `known`, with nothing in it that is not this node's to say. */
export function nextStatus(known: NodeStatus | undefined, input: StatusInput): FullNodeStatus {
  const { config, facts, runtimeStatus } = input;
  const capacity = capacityOf(facts, config, known?.capacity);
  return {
    capacity,
    allocatable: allocatableOf(capacity, config),
    conditions: nextConditions(known?.conditions ?? [], input.health, input.pressure, input.now),
    addresses: nodeAddresses(input.nodeIPs, input.nodeName),
    daemonEndpoints: { kubeletEndpoint: { Port: input.kubeletPort } },
    nodeInfo: {
      machineID: facts.machineID,
      systemUUID: facts.systemUUID,
      bootID: facts.bootID,
      kernelVersion: facts.kernelVersion,
      osImage: facts.osImage,
      containerRuntimeVersion:
        runtimeVersionText(input.runtimeVersion) ?? known?.nodeInfo?.containerRuntimeVersion ?? '',
      kubeletVersion: input.kubeletVersion,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: facts.architecture,
    },
    images: imageList(input.images, config.nodeStatusMaxImages),
    ...volumesInUse(input.volumesInUse ?? [], known?.volumesInUse),
    ...(runtimeStatus === undefined || runtimeStatus.handlers.length === 0
      ? {}
      : {
          runtimeHandlers: runtimeStatus.handlers.map(({ name, recursiveReadOnlyMounts, userNamespaces }) => ({
            name,
            features: { recursiveReadOnlyMounts, userNamespaces },
          })),
        }),
    ...(runtimeStatus?.features.supplementalGroupsPolicy === true
      ? { features: { supplementalGroupsPolicy: true } }
      : {}),
  };
}

/** An empty list is written only to clear one that was not. */
function volumesInUse(now: readonly string[], before: readonly string[] | undefined): Pick<NodeStatus, 'volumesInUse'> {
  return now.length === 0 && before === undefined ? {} : { volumesInUse: [...now] };
}

/** "containerd://1.6.20", whether or not the runtime writes a v in front. */
function runtimeVersionText(version: RuntimeVersion | undefined): string | undefined {
  return version === undefined ? undefined : `${version.name}://${version.version.replace(/^v(?=\d)/, '')}`;
}

/** The largest images first, as the scheduler's image locality needs them; -1 is no limit. */
export function imageList(images: readonly RuntimeImage[], max: number): ContainerImage[] {
  const sorted = [...images].sort((a, b) => b.sizeBytes - a.sizeBytes || (a.id < b.id ? -1 : 1));
  return (max === -1 ? sorted : sorted.slice(0, max)).map(({ repoDigests, repoTags, sizeBytes }) => ({
    names: [...repoDigests, ...repoTags].slice(0, MAX_NAMES_PER_IMAGE),
    sizeBytes,
  }));
}

/** Whether `next` differs from `known`, heartbeats aside. */
export function statusChanged(known: NodeStatus | undefined, next: FullNodeStatus): boolean {
  const { conditions: before = [], ...rest } = known ?? {};
  const { conditions: now = [], ...nextRest } = next;
  const changedCondition = now.some((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    return old?.status !== condition.status || old.reason !== condition.reason || old.message !== condition.message;
  });
  return changedCondition || !covers(rest, nextRest);
}

/** What decides how soon a changed status may be written; times are monotonic ms. */
export interface StatusPace {
  /** Something waits for the status: a mount, until its volume is in volumesInUse. */
  readonly urgent: boolean;
  /** This run has reported the node as Ready: until then every change is written at once, as in the kubelet. */
  readonly reportedReady: boolean;
  /** When the last one was written, if one was. */
  readonly reportedAt: MonotonicMs | undefined;
  readonly now: MonotonicMs;
  /** KubeletConfiguration's nodeStatusUpdateFrequency, in ms. */
  readonly updateFrequency: number;
}

/** How long (ms) a changed status has to wait because the one before is young; 0 is not at all. */
export function statusDelayMs({ urgent, reportedReady, reportedAt, now, updateFrequency }: StatusPace): number {
  if (urgent || !reportedReady || reportedAt === undefined) return 0;
  return Math.max(0, reportedAt + updateFrequency - now);
}

/** True when everything in `wanted` is in `present` and equal; lists are compared whole. Key order does not count. */
export function covers(present: unknown, wanted: unknown): boolean {
  if (wanted === undefined || present === wanted) return true;
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(present) &&
      present.length === wanted.length &&
      wanted.every((item, index) => covers(present[index], item))
    );
  }
  if (isFields(wanted)) {
    // The server leaves out what is empty.
    if (!isFields(present)) return Object.values(wanted).every(isEmpty);
    return Object.entries(wanted).every(
      ([key, value]) => covers(getOwn(present, key), value) || (isEmpty(value) && !Object.hasOwn(present, key)),
    );
  }
  return isEmpty(wanted) && present === undefined;
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0);
}

/**
 * The strategic merge patch that turns `known` into `next`. Addresses are replaced as a whole (their merge key is the
 * type, of which there can be two); resources that are gone are nulled.
 */
export function statusPatch(known: NodeStatus | undefined, next: FullNodeStatus): { readonly status: object } {
  const { addresses = [], capacity = {}, allocatable = {}, ...rest } = next;
  const gone = (before: Readonly<Record<string, string>> | undefined, now: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.keys(before ?? {})
        .filter((key) => !Object.hasOwn(now, key))
        .map((key) => [key, null]),
    );
  return {
    status: {
      ...rest,
      capacity: { ...capacity, ...gone(known?.capacity, capacity) },
      allocatable: { ...allocatable, ...gone(known?.allocatable, allocatable) },
      addresses: [...addresses, { $patch: 'replace' }],
    },
  };
}
