// What every service works with: options, records, locks, and per call the ways to change the machine. Each change goes
// through a step, at which tests can make the driver fail or die.

import type { Clock } from '../../lib/clock.ts';
import type { Exec } from '../../lib/exec.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace.ts';
import { notFound } from './errors.ts';
import type { FaultPoint } from './faults.ts';
import type { Locks } from './locks.ts';
import { isSafeId } from './names.ts';
import type { NodeRecord, SnapshotRecord, VolumeRecord } from './records.ts';
import type { Store } from './store.ts';

export interface DriverOptions {
  /** unix:///path */
  readonly endpoint: string;
  /** Images and records. */
  readonly stateDir: string;
  readonly nodeId: string;
  /** Other nodes that the controller may attach volumes to. */
  readonly peerNodes: readonly string[];
  /** PUBLISH_UNPUBLISH_VOLUME: volumes are attached before they are staged. */
  readonly attach: boolean;
  /** VOLUME_MOUNT_GROUP. */
  readonly mountGroup: boolean;
  /** max_volumes_per_node. */
  readonly maxVolumes: number;
  /** The maximum of all volumes' capacities together, bytes; undefined: what the disk has. */
  readonly poolBytes?: number;
  /** plugins_registry of the kubelet; undefined: it is not registered. */
  readonly registrationDir?: string;
  readonly callLog?: string;
  readonly faultFile?: string;
  /** JSON, as in the fault file. */
  readonly faults?: string;
  /** Secrets that calls must carry: method → key → value. */
  readonly requiredSecrets?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface Driver {
  readonly options: DriverOptions;
  readonly store: Store;
  readonly locks: Locks;
  readonly clock: Clock;
  readonly log: Log;
  readonly tracer: Tracer;
  /** Each program is a span. */
  readonly exec: Exec;
}

/** What one call works with. */
export class Work {
  readonly driver: Driver;
  readonly #point: FaultPoint;
  readonly run: Exec;

  constructor(driver: Driver, point: FaultPoint) {
    this.driver = driver;
    this.#point = point;
    this.run = async (file, args, options) => {
      await point.step();
      return driver.exec(file, args, options);
    };
  }

  get store(): Store {
    return this.driver.store;
  }

  /** Before a change that is neither a program nor a record. */
  step(): Promise<void> {
    return this.#point.step();
  }

  async putVolume(record: VolumeRecord): Promise<VolumeRecord> {
    await this.#point.step();
    await this.store.putVolume(record);
    return record;
  }
  async removeVolume(id: string): Promise<void> {
    await this.#point.step();
    await this.store.removeVolume(id);
  }
  async putSnapshot(record: SnapshotRecord): Promise<void> {
    await this.#point.step();
    await this.store.putSnapshot(record);
  }
  async removeSnapshot(id: string): Promise<void> {
    await this.#point.step();
    await this.store.removeSnapshot(id);
  }
  async putOnNode(record: NodeRecord): Promise<NodeRecord> {
    await this.#point.step();
    await this.store.putOnNode(record);
    return record;
  }

  /** Throws NOT_FOUND. */
  volume(id: string): VolumeRecord {
    const found = isSafeId(id) ? this.store.volume(id) : undefined;
    if (found === undefined) throw notFound(`volume ${id} does not exist`);
    return found;
  }
}

/** The methods of a generated service definition, as the driver writes them. */
export type Service<D> = {
  readonly [M in keyof D as string extends M ? never : number extends M ? never : M]: D[M] extends {
    requestDeserialize: (bytes: Buffer) => infer Request;
    responseSerialize: (value: infer Response) => Buffer;
  }
    ? (request: Request, work: Work) => Promise<Response>
    : never;
};
