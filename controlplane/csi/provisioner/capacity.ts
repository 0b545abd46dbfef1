// Publishes a driver's capacity, per StorageClass and topology segment, as CSIStorageCapacity objects, which the scheduler
// considers, where the CSIDriver has storageCapacity, before it binds a pod with a new volume to a node. Calls GetCapacity
// when something may have changed and every minute; `wantedCapacities` decides which objects there should be.

import { createHash } from 'node:crypto';
import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { type CsiNode, type CsiStorageCapacity, formatBinary, type StorageClass } from '../../storage/objects.ts';
import { CAPACITIES, deleteAsRead, patchAsRead } from '../../storage/write.ts';
import { CONTROLLER_TIMEOUT_MS, type Driver } from '../shared/drivers.ts';
import { splitParameters } from './request.ts';
import { clusterSegments, type Segments } from './topology.ts';

type Needed = Pick<Informers, 'csiStorageCapacities' | 'csiNodes' | 'nodes' | 'storageClasses' | 'persistentVolumes'>;

/** As the external-provisioner's --capacity-poll-interval. */
const POLL_MS = 60_000;
/** The namespace of the objects: that of the publishing component. */
const NAMESPACE = 'kube-system';
const DRIVER_LABEL = 'csi.storage.k8s.io/drivername';
const MANAGED_LABEL = 'csi.storage.k8s.io/managed-by';
const MANAGER = 'external-provisioner';
const KEY = 'capacities';

/** One question to the driver. */
export interface Place {
  readonly storageClass: StorageClass;
  readonly segments: Segments;
}

/** Classes of the driver that bind late, in every segment that the driver has. */
export function wantedCapacities(
  driver: string,
  classes: readonly StorageClass[],
  nodes: readonly Node[],
  csiNodes: readonly CsiNode[],
): Place[] {
  const segments = clusterSegments(driver, nodes, csiNodes);
  return classes
    .filter((one) => one.provisioner === driver && one.volumeBindingMode === 'WaitForFirstConsumer')
    .flatMap((storageClass) => segments.map((one) => ({ storageClass, segments: one })));
}

export function placeKey(storageClass: string, segments: Readonly<Record<string, string>>): string {
  return JSON.stringify([storageClass, Object.entries(segments).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
}

/** The same at every attempt, so that none is made twice. */
function capacityName(driver: string, key: string): string {
  return `csisc-${createHash('sha256').update(`${driver} ${key}`).digest('hex').slice(0, 12)}`;
}

function sameLabels(a: Node, b: Node): boolean {
  return sameJson(a.metadata.labels ?? {}, b.metadata.labels ?? {});
}

function keyOf(object: CsiStorageCapacity): string {
  return placeKey(object.storageClassName, object.nodeTopology?.matchLabels ?? {});
}

/** Of one driver; there is one key. */
export class CapacityPublisher implements Controller {
  readonly name: string;
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly #driver: Driver;
  readonly #context: ControllerContext;
  readonly #informers: Needed;

  constructor(driver: Driver, context: ControllerContext, informers: Needed) {
    this.name = `capacity ${driver.name}`;
    this.#driver = driver;
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock, initialDelayMs: 1000, maxDelayMs: POLL_MS });
    const again = (changes: readonly unknown[]): void => {
      if (changes.length > 0) this.queue.add(KEY);
    };
    informers.csiNodes.onChange(again);
    informers.storageClasses.onChange(again);
    // A driver's keys may be seen before the node's labels that they are about.
    informers.nodes.onChange((changes) => {
      again(changes.filter((c) => c.type !== 'modified' || !sameLabels(c.old, c.object)));
    });
    // A volume made or deleted changes what is left.
    informers.persistentVolumes.onChange((changes) => again(changes.filter(({ type }) => type !== 'modified')));
  }

  async sync(): Promise<void> {
    const { csiNodes, nodes, storageClasses, csiStorageCapacities } = this.#informers;
    const own = csiStorageCapacities
      .list()
      .filter(
        ({ metadata }) =>
          metadata.labels?.[DRIVER_LABEL] === this.#driver.name && metadata.labels[MANAGED_LABEL] === MANAGER,
      );
    const able = (await this.#driver.capabilities()).controller.has('GET_CAPACITY');
    const wanted = able
      ? wantedCapacities(this.#driver.name, storageClasses.list(), nodes.list(), csiNodes.list())
      : [];
    const left = new Map(own.map((object) => [keyOf(object), object]));
    for (const place of wanted) {
      const key = placeKey(place.storageClass.metadata.name, place.segments);
      await this.#publish(place, key, left.get(key));
      left.delete(key);
    }
    for (const object of left.values()) await deleteAsRead(this.#context.client, CAPACITIES, object);
    if (wanted.length > 0) this.queue.addAfter(KEY, POLL_MS);
  }

  async #publish({ storageClass, segments }: Place, key: string, known: CsiStorageCapacity | undefined): Promise<void> {
    const { fsType, own } = splitParameters(storageClass.parameters);
    const answer = await this.#driver.client.controller.GetCapacity(
      {
        parameters: { ...own },
        accessible_topology: { segments: { ...segments } },
        volume_capabilities: [
          { mount: { fs_type: fsType, mount_flags: [] }, access_mode: { mode: 'SINGLE_NODE_WRITER' } },
        ],
      },
      { deadlineMs: CONTROLLER_TIMEOUT_MS },
    );
    const maximum = answer.maximum_volume_size?.value;
    const figures = {
      capacity: formatBinary(BigInt(answer.available_capacity)),
      ...(maximum === undefined ? {} : { maximumVolumeSize: formatBinary(BigInt(maximum)) }),
    };
    const { client } = this.#context;
    if (known === undefined) {
      await this.#create({
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSIStorageCapacity',
        metadata: {
          name: capacityName(this.#driver.name, key),
          namespace: NAMESPACE,
          labels: { [DRIVER_LABEL]: this.#driver.name, [MANAGED_LABEL]: MANAGER },
        },
        storageClassName: storageClass.metadata.name,
        nodeTopology: { matchLabels: { ...segments } },
        ...figures,
      });
    } else if (known.capacity !== figures.capacity || known.maximumVolumeSize !== figures.maximumVolumeSize) {
      try {
        await patchAsRead(client, CAPACITIES, known, figures);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }

  async #create(object: object): Promise<void> {
    try {
      await this.#context.client.create(
        resourcePath('storage.k8s.io/v1', 'csistoragecapacities', { namespace: NAMESPACE }),
        object,
      );
    } catch (error) {
      // Made a moment ago; the cache will show it.
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
