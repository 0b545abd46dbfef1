// Which volumes must be attached to which nodes, as functions of what there is: what Kubernetes' attach/detach
// controller decides. Pure.

import { createHash } from 'node:crypto';
import type { Node, Pod } from '../../../client/types.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import {
  type CsiDriver,
  claimNameOf,
  isBound,
  isFinished,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type VolumeAttachment,
} from '../../storage/objects.ts';

/** A volume is taken from a node that does not answer after this long (maxWaitForUnmountDuration). */
export const FORCE_DETACH_MS = 360_000;
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** The name of the attachment of a volume to a node, the same as the kubelet computes. */
export function attachmentName(handle: string, driver: string, node: string): string {
  return `csi-${createHash('sha256').update(`${handle}${driver}${node}`).digest('hex')}`;
}

/** How a node's status names a CSI volume. */
export function uniqueVolumeName(driver: string, handle: string): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

export interface AttachView {
  /** "namespace/name" */
  claim(key: string): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  csiDriver(name: string): CsiDriver | undefined;
}

/** The CSI volumes of a pod whose CSIDriver has attachRequired. */
export function attachableVolumes(pod: Pod, view: AttachView): PersistentVolume[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const name = claimNameOf(pod, volume);
    const claim = name === undefined ? undefined : view.claim(`${pod.metadata.namespace}/${name}`);
    if (claim === undefined || !isBound(claim)) return [];
    const found = view.volume(claim.spec?.volumeName ?? '');
    const csi = found?.spec?.csi;
    if (found === undefined || csi === undefined || found.spec?.claimRef?.uid !== claim.metadata.uid) return [];
    // A driver without an object is attached to be safe, as Kubernetes does.
    return view.csiDriver(csi.driver)?.spec.attachRequired === false ? [] : [found];
  });
}

export interface NodePlanInput {
  readonly nodeName: string;
  /** Undefined when it is gone. */
  readonly node: Node | undefined;
  /** Those placed on it. */
  readonly pods: readonly Pod[];
  /** All there are, of every node. */
  readonly attachments: readonly VolumeAttachment[];
  readonly view: AttachView;
  /** Since when (monotonic ms) no pod has needed an attachment, and now. */
  readonly unwantedSince: ReadonlyMap<string, MonotonicMs>;
  readonly now: MonotonicMs;
}

export interface Blocked {
  readonly pod: Pod;
  readonly message: string;
}

export interface NodePlan {
  readonly attach: readonly { readonly volume: PersistentVolume; readonly name: string }[];
  readonly detach: readonly VolumeAttachment[];
  /** Attachments that no pod needs, but in use by the node. */
  readonly waiting: readonly VolumeAttachment[];
  /** What node.status.volumesAttached shall say. */
  readonly attached: readonly string[];
  /** Pods that get an event that their volume is attached to another node. */
  readonly blocked: readonly Blocked[];
}

export function planNode(input: NodePlanInput): NodePlan {
  const { nodeName, node, pods, attachments, view } = input;
  const wanted = new Map<string, { readonly volume: PersistentVolume; readonly pods: Pod[] }>();
  for (const pod of pods) {
    if (isFinished(pod)) continue;
    for (const volume of attachableVolumes(pod, view)) {
      const known = wanted.get(volume.metadata.name);
      if (known === undefined) wanted.set(volume.metadata.name, { volume, pods: [pod] });
      else known.pods.push(pod);
    }
  }
  const here = attachments.filter(({ spec }) => spec.nodeName === nodeName);
  const attach: { volume: PersistentVolume; name: string }[] = [];
  const blocked: Blocked[] = [];
  for (const { volume, pods: users } of wanted.values()) {
    const { csi } = volume.spec ?? {};
    if (csi === undefined) continue;
    const name = attachmentName(csi.volumeHandle, csi.driver, nodeName);
    if (here.some(({ metadata }) => metadata.name === name)) continue;
    if (isExclusive(volume) && attachments.some(({ spec }) => isElsewhere(spec, volume, nodeName))) {
      const message =
        `Multi-Attach error for volume "${volume.metadata.name}" Volume is already exclusively attached to one node ` +
        "and can't be attached to another";
      blocked.push(...users.map((pod) => ({ pod, message })));
    } else if (node !== undefined) attach.push({ volume, name });
  }
  const detach: VolumeAttachment[] = [];
  const waiting: VolumeAttachment[] = [];
  for (const one of here) {
    const source = one.spec.source.persistentVolumeName ?? '';
    if (source === '' || wanted.has(source) || one.metadata.deletionTimestamp !== undefined) continue;
    (mayDetach(one, input) ? detach : waiting).push(one);
  }
  const leaving = new Set(detach.map(({ metadata }) => metadata.name));
  const attached = here
    .filter((one) => one.status?.attached === true && one.metadata.deletionTimestamp === undefined)
    .filter(({ metadata }) => !leaving.has(metadata.name))
    .flatMap((one) => nameOnNode(one, view) ?? [])
    .sort();
  return { attach, detach, waiting, attached, blocked };
}

function isExclusive(volume: PersistentVolume): boolean {
  const modes = volume.spec?.accessModes ?? [];
  return !modes.includes('ReadWriteMany') && !modes.includes('ReadOnlyMany');
}

function isElsewhere(spec: VolumeAttachment['spec'], volume: PersistentVolume, node: string): boolean {
  return spec.source.persistentVolumeName === volume.metadata.name && spec.nodeName !== node;
}

function nameOnNode(one: VolumeAttachment, view: AttachView): string | undefined {
  const csi = view.volume(one.spec.source.persistentVolumeName ?? '')?.spec?.csi;
  return csi === undefined ? undefined : uniqueVolumeName(csi.driver, csi.volumeHandle);
}

/** The node has unmounted it; or the node is gone, or has not been ready for the force-detach timeout. */
function mayDetach(one: VolumeAttachment, { node, view, unwantedSince, now }: NodePlanInput): boolean {
  if (node === undefined) return true;
  if ((node.spec?.taints ?? []).some((taint) => taint.key === OUT_OF_SERVICE)) return true;
  const name = nameOnNode(one, view);
  if (name === undefined || !(node.status?.volumesInUse ?? []).includes(name)) return true;
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready')?.status === 'True';
  const since = unwantedSince.get(one.metadata.name) ?? now;
  return !ready && elapsedMs(since, now) >= FORCE_DETACH_MS;
}
