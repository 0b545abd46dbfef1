// Creates a VolumeAttachment for every volume that a pod on a node needs attached there, deletes those that no pod needs,
// and reports the attached volumes in the Node's status. plan.ts decides what to do; csi-attacher.ts, or an
// external-attacher, attaches.

import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Change } from '../../../client/store.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claimNamesOf, type PersistentVolume, type VolumeAttachment } from '../../storage/objects.ts';
import { OnceRecorder } from '../../storage/once-recorder.ts';
import { ATTACHMENTS, deleteAsRead, patchAsRead } from '../../storage/write.ts';
import { type AttachView, attachableVolumes, FORCE_DETACH_MS, planNode, uniqueVolumeName } from './plan.ts';

type Needed = Pick<
  Informers,
  'pods' | 'nodes' | 'persistentVolumes' | 'persistentVolumeClaims' | 'csiDrivers' | 'volumeAttachments'
>;

const NODES = { apiVersion: 'v1', plural: 'nodes' };

/** Keys are names of nodes. */
export class AttachDetachController implements Controller {
  readonly name = 'attach-detach';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #view: AttachView;
  readonly #events: OnceRecorder;
  /** Attachment → monotonic ms. */
  readonly #unwantedSince = new Map<string, MonotonicMs>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.#events = new OnceRecorder(context.recorder, context.clock);
    this.queue = new WorkQueue({ clock: context.clock, maxDelayMs: 60_000 });
    const { pods, nodes, persistentVolumes, persistentVolumeClaims, csiDrivers, volumeAttachments } = informers;
    this.#view = {
      claim: (key) => persistentVolumeClaims.get(key),
      volume: (name) => persistentVolumes.get(name),
      csiDriver: (name) => csiDrivers.get(name),
    };
    pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
    nodes.onChange((changes) => {
      for (const change of changes) if (matters(change)) this.queue.add(change.object.metadata.name);
    });
    volumeAttachments.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') {
          this.#unwantedSince.delete(object.metadata.name);
          this.#queueUsers(object);
        }
        this.queue.add(object.spec.nodeName);
      }
    });
    persistentVolumeClaims.onChange((changes) => {
      const keys = new Set(changes.map(({ object }) => `${object.metadata.namespace}/${object.metadata.name}`));
      for (const pod of keys.size === 0 ? [] : pods.list()) {
        const { namespace } = pod.metadata;
        if (claimNamesOf(pod).some((name) => keys.has(`${namespace}/${name}`))) this.#queueNode(pod);
      }
    });
    csiDrivers.onChange((changes) => {
      if (changes.length > 0) for (const node of nodes.list()) this.queue.add(node.metadata.name);
    });
  }

  #queueNode(pod: Pod): void {
    const node = pod.spec.nodeName ?? '';
    if (node !== '') this.queue.add(node);
  }

  #podChanged(change: Change<Pod>): void {
    if (claimNamesOf(change.object).length === 0) return;
    const moved =
      change.type !== 'modified' ||
      change.old.spec.nodeName !== change.object.spec.nodeName ||
      change.old.status?.phase !== change.object.status?.phase;
    if (moved) this.#queueNode(change.object);
  }

  /** A volume that came free somewhere may be what pods elsewhere wait for. */
  #queueUsers({ spec }: VolumeAttachment): void {
    for (const pod of this.#informers.pods.list()) {
      const uses = attachableVolumes(pod, this.#view).some(
        ({ metadata }) => metadata.name === spec.source.persistentVolumeName,
      );
      if (uses) this.#queueNode(pod);
    }
  }

  async sync(nodeName: string): Promise<void> {
    const { nodes, pods, volumeAttachments } = this.#informers;
    const now = this.#context.clock.monotonic();
    const node = nodes.get(nodeName);
    const own = pods.list().filter((pod) => pod.spec.nodeName === nodeName);
    const plan = planNode({
      nodeName,
      node,
      pods: own,
      attachments: volumeAttachments.list(),
      view: this.#view,
      unwantedSince: this.#unwantedSince,
      now,
    });
    for (const { pod, message } of plan.blocked) this.#warn(pod, message);
    for (const { volume, name } of plan.attach) await this.#attach(volume, name, nodeName);
    // The Node's status is written first: the kubelet must not begin to use a volume that is about to be detached.
    if (node !== undefined) await this.#report(node, plan.attached, own);
    for (const one of plan.detach) await deleteAsRead(this.#context.client, ATTACHMENTS, one);
    for (const { metadata } of plan.waiting) {
      const since = this.#unwantedSince.get(metadata.name) ?? now;
      this.#unwantedSince.set(metadata.name, since);
      this.queue.addAfter(nodeName, Math.max(1000, FORCE_DETACH_MS - elapsedMs(since, now)));
    }
    this.#reportFailures(nodeName, own);
  }

  #warn(pod: Pod, message: string): void {
    this.#events.event({ ...pod, kind: 'Pod', apiVersion: 'v1' }, 'Warning', 'FailedAttachVolume', message);
  }

  async #attach(volume: PersistentVolume, name: string, nodeName: string): Promise<void> {
    try {
      await this.#context.client.create(resourcePath(ATTACHMENTS.apiVersion, ATTACHMENTS.plural), {
        apiVersion: ATTACHMENTS.apiVersion,
        kind: 'VolumeAttachment',
        metadata: { name },
        spec: {
          attacher: volume.spec?.csi?.driver,
          nodeName,
          source: { persistentVolumeName: volume.metadata.name },
        },
      });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  async #report(node: Node, attached: readonly string[], pods: readonly Pod[]): Promise<void> {
    const before = (node.status?.volumesAttached ?? []).map(({ name }) => name).sort();
    if (before.join('\n') === attached.join('\n')) return;
    const volumesAttached = attached.map((name) => ({ name, devicePath: '' }));
    try {
      await patchAsRead(this.#context.client, NODES, node, { status: { volumesAttached } }, 'status');
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return;
    }
    for (const pod of pods) {
      for (const volume of attachableVolumes(pod, this.#view)) {
        const { driver = '', volumeHandle = '' } = volume.spec?.csi ?? {};
        const name = uniqueVolumeName(driver, volumeHandle);
        if (!attached.includes(name) || before.includes(name)) continue;
        const message = `AttachVolume.Attach succeeded for volume "${volume.metadata.name}" `;
        this.#events.event({ ...pod, kind: 'Pod', apiVersion: 'v1' }, 'Normal', 'SuccessfulAttachVolume', message);
      }
    }
  }

  /** Records an attach error of the driver as an event of the pods that wait for the volume. */
  #reportFailures(nodeName: string, pods: readonly Pod[]): void {
    for (const one of this.#informers.volumeAttachments.list()) {
      const why = one.status?.attachError?.message;
      if (one.spec.nodeName !== nodeName || why === undefined || one.status?.attached === true) continue;
      const source = one.spec.source.persistentVolumeName ?? '';
      for (const pod of pods) {
        if (!attachableVolumes(pod, this.#view).some(({ metadata }) => metadata.name === source)) continue;
        this.#warn(pod, `AttachVolume.Attach failed for volume "${source}" : ${why}`);
      }
    }
  }
}

/** Heartbeats do not; what a node uses, and whether it is there at all, do. */
function matters(change: Change<Node>): boolean {
  if (change.type !== 'modified') return true;
  const view = ({ spec, status }: Node): string =>
    JSON.stringify([
      status?.volumesInUse,
      status?.volumesAttached,
      spec?.taints,
      status?.conditions?.find(({ type }) => type === 'Ready')?.status,
    ]);
  return view(change.old) !== view(change.object);
}
