// The memory of a simulated machine, as the kernel counts it in cgroup v2's files: what each process has taken, its pod's
// sum, and the machine's. Some processes take nearly all there is; it is given back when they end.

import { join } from 'node:path';
import { type CgroupLayout, cgroupPath, kubepodsName, podName } from '../../agent/model/cgroup-names.ts';
import { podQOSClass } from '../../agent/model/pod-resources.ts';
import type { Pod } from '../../client/types.ts';
import type { Clock, MonotonicMs } from '../../lib/clock.ts';
import type { Instance } from './cri/state.ts';
import type { Faults } from './faults.ts';

const MIB = 1024 ** 2;
export const CAPACITY_BYTES = 8 * 1024 * MIB;
/** With less than this the node is under pressure. */
export const THRESHOLD_BYTES = 512 * MIB;
const LAYOUT: CgroupLayout = { root: '/', driver: 'cgroupfs' };
/** What a process has from its beginning. */
const USUAL_BYTES = 20 * MIB;
const HOG_BYTES = 7_400 * MIB;

export class SimMemory {
  /** Where cgroups are mounted. */
  readonly mountPoint: string;
  /** By path. The agent reads some of them, and looks for others that there are not, in every round. */
  readonly #files = new Map<string, string>();
  readonly #taken = new Map<Instance, number>();
  #otherBytes = 0;
  #writes = 0;
  readonly #faults: Faults;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Undefined where there was always enough. */
  #lastShort: MonotonicMs | undefined;
  /** Monotonic ms; undefined while there is enough. */
  #shortSince: MonotonicMs | undefined;

  constructor(root: string, faults: Faults, clock: Pick<Clock, 'monotonic'>) {
    this.#faults = faults;
    this.#clock = clock;
    this.mountPoint = join(root, 'cgroup');
    this.#write('/', 0);
  }

  get kubepods(): string {
    return cgroupPath(LAYOUT, kubepodsName(LAYOUT));
  }

  get available(): number {
    let taken = this.#otherBytes;
    for (const bytes of this.#taken.values()) taken += bytes;
    return Math.max(0, CAPACITY_BYTES - taken);
  }

  get isShort(): boolean {
    return this.available < THRESHOLD_BYTES;
  }

  /** When there was last too little; undefined where there was always enough. */
  get lastShort(): MonotonicMs | undefined {
    return this.isShort ? this.#clock.monotonic() : this.#lastShort;
  }

  /** Since when there has been too little without a break (monotonic ms); undefined while there is enough. */
  get shortSince(): MonotonicMs | undefined {
    return this.#shortSince;
  }

  /** Taken by what is in no pod, bytes. */
  get otherBytes(): number {
    return this.#otherBytes;
  }

  set otherBytes(bytes: number) {
    this.#otherBytes = bytes;
    this.#write('/', CAPACITY_BYTES - this.available);
  }

  bytesOf(instance: Instance): number {
    return this.#taken.get(instance) ?? 0;
  }

  /** Takes so many bytes more. */
  grows(instance: Instance, bytes: number): void {
    if (this.#taken.has(instance)) this.#take(instance, this.bytesOf(instance) + bytes);
  }

  begins(instance: Instance): void {
    this.#take(instance, USUAL_BYTES);
  }

  /** Takes nearly all there is. */
  hogs(instance: Instance): void {
    this.#take(instance, HOG_BYTES);
  }

  ends(instance: Instance): void {
    this.#lastShort = this.lastShort;
    if (!this.#taken.delete(instance)) return;
    this.#count(instance);
  }

  #take(instance: Instance, bytes: number): void {
    this.#taken.set(instance, bytes);
    this.#count(instance);
  }

  #count({ pod: { uid }, spec }: Instance): void {
    let sum = 0;
    for (const [{ pod }, bytes] of this.#taken) if (pod.uid === uid) sum += bytes;
    this.#shortSince = this.isShort ? (this.#shortSince ?? this.#clock.monotonic()) : undefined;
    this.#write(cgroupOf(spec.pod), sum);
    this.#write('/', CAPACITY_BYTES - this.available);
  }

  #write(cgroup: string, bytes: number): void {
    if (bytes > THRESHOLD_BYTES && this.#faults.has('the memory of processes is not counted')) return;
    this.#writes++;
    const directory = join(this.mountPoint, cgroup);
    const write = (name: string, text: string | undefined): void => {
      const path = join(directory, name);
      if (text === undefined) this.#files.delete(path);
      else this.#files.set(path, text);
    };
    const isThere = bytes > 0 || cgroup === '/';
    write('memory.stat', isThere ? `anon ${bytes}\nfile 0\ninactive_file 0\n` : undefined);
    write('memory.current', isThere && cgroup !== '/' ? `${bytes}\n` : undefined);
  }

  /** How often a file of cgroups has been written. */
  get writes(): number {
    return this.#writes;
  }

  /** The content of a file of cgroups; undefined where there is none. */
  read(path: string): string | undefined {
    return this.#files.get(path);
  }
}

function cgroupOf(pod: Pod): string {
  return cgroupPath(LAYOUT, podName(LAYOUT, pod.metadata.uid, podQOSClass(pod)));
}
