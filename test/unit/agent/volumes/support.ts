// A pod, an object reader and a mount table for volume tests: in memory, where the kernel is not needed.

import type { EventRecorder, ObjectReader } from '../../../../agent/ports/api.ts';
import type { MountEntry, Mounter } from '../../../../agent/ports/mounter.ts';
import type { ConfigMap, Pod, Secret } from '../../../../client/types.ts';
import {
  type Clock,
  type EpochMs,
  epochMs,
  type MonotonicMs,
  monotonicMs,
  plusMs,
  sleepWith,
  type Timer,
} from '../../../../lib/clock.ts';

export function pod(spec: Partial<Pod['spec']>, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', uid: 'uid-1', resourceVersion: '1', ...metadata },
    spec: { containers: [], ...spec },
  };
}

/** A pod whose one container mounts every volume at /<name>. */
export function podWith(volumes: NonNullable<Pod['spec']['volumes']>, spec: Partial<Pod['spec']> = {}): Pod {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  return pod({ volumes, containers: [{ name: 'c', image: 'i', volumeMounts }], ...spec });
}

export function configMap(
  name: string,
  data: Record<string, string>,
  binaryData: Record<string, string> = {},
): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, uid: name, resourceVersion: '1' }, data, binaryData };
}

export function secret(name: string, data: Record<string, string>): Secret {
  const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, uid: name, resourceVersion: '1' },
    data: Object.fromEntries(encoded),
  };
}

export class FakeObjects implements ObjectReader {
  readonly configMaps = new Map<string, ConfigMap>();
  readonly secrets = new Map<string, Secret>();
  readonly tokenRequests: { audience?: string; expirationSeconds: number }[] = [];
  failure: Error | undefined;
  readonly #clock: Clock;
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  async configMap(_namespace: string, name: string) {
    if (this.failure !== undefined) throw this.failure;
    return this.configMaps.get(name);
  }
  async secret(_namespace: string, name: string) {
    if (this.failure !== undefined) throw this.failure;
    return this.secrets.get(name);
  }
  async services() {
    return [];
  }
  async serviceAccountToken(_pod: Pod, request: { audience?: string; expirationSeconds: number }) {
    if (this.failure !== undefined) throw this.failure;
    this.tokenRequests.push(request);
    const expiresAt = plusMs(this.#clock.now(), request.expirationSeconds * 1000);
    return { token: `token-${this.tokenRequests.length}`, expiresAt };
  }
}

/** Events as "reason: message". */
export class FakeRecorder implements EventRecorder {
  readonly events: string[] = [];
  event(...[, , reason, message]: Parameters<EventRecorder['event']>) {
    this.events.push(`${reason}: ${message}`);
  }
}

/** A mount table in memory; `busy` targets refuse to be unmounted. */
export class FakeMounter implements Mounter {
  entries: MountEntry[] = [];
  readonly calls: string[] = [];
  readonly busy = new Set<string>();
  async list() {
    return [...this.entries];
  }
  async mount({ fsType = '', source, target, options = [] }: Parameters<Mounter['mount']>[0]) {
    this.calls.push(`mount ${fsType} ${options.join(',')} ${source} ${target}`);
    this.entries.push(entry(target, { fsType, source }));
  }
  async formatIfEmpty(device: string, fsType: string): Promise<void> {
    throw new Error(`nothing here has a device to format: ${device}, ${fsType}`);
  }
  async unmount(target: string) {
    this.calls.push(`umount ${target}`);
    if (this.busy.has(target)) throw new Error(`unmount failed: ${target}: target is busy.`);
    const index = this.entries.findLastIndex(({ path }) => path === target);
    if (index >= 0) this.entries.splice(index, 1);
  }
}

export function entry(path: string, more: Partial<MountEntry> = {}): MountEntry {
  const rest = { options: ['rw'], optional: [], fsType: 'tmpfs', source: 'tmpfs', superOptions: ['rw'] };
  return { id: 1, parent: 0, device: '0:1', root: '/', rootDeleted: false, path, ...rest, ...more };
}

/** A clock that moves only on advance(). */
export class ManualClock implements Clock {
  #now = 1_700_000_000_000;
  #timers: { at: number; fn: () => void }[] = [];
  now(): EpochMs {
    return epochMs(this.#now);
  }
  monotonic(): MonotonicMs {
    return monotonicMs(this.#now);
  }
  after(ms: number, fn: () => void): Timer {
    const timer = { at: this.#now + ms, fn };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }
  sleep(ms: number, signal?: AbortSignal) {
    return sleepWith(this, ms, signal);
  }
  get pending() {
    return this.#timers.length;
  }
  advance(ms: number) {
    this.#now += ms;
    const due = this.#timers.filter(({ at }) => at <= this.#now);
    this.#timers = this.#timers.filter(({ at }) => at > this.#now);
    for (const { fn } of due) fn();
  }
}
