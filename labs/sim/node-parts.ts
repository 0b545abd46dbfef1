// The smaller parts of a simulated node behind the agent's ports: cgroups, events, the objects that pods refer to.

import { uidOf } from '../../agent/model/pod-uid.ts';
import type { EventRecorder, ObjectReader } from '../../agent/ports/api.ts';
import type { PodCgroups } from '../../agent/ports/node.ts';
import type { PodUID } from '../../agent/ports/runtime.ts';
import type { ConfigMap, Pod, Secret, Service } from '../../client/types.ts';
import { type EpochMs, epochMs } from '../../lib/clock.ts';
import type { Faults } from './faults.ts';
import type { Line } from './line.ts';
import { cpuOfPod } from './pod-cpu.ts';

const DEADLINE_MS = 30_000;

export class SimCgroups implements PodCgroups {
  readonly pods = new Set<PodUID>();
  /** How large the cgroup of each pod was made, in millicores. */
  readonly cpuMilli = new Map<PodUID, number>();
  readonly #line: Line;
  readonly #faults: Faults;
  readonly #onRemove: (uid: PodUID) => void;

  constructor(line: Line, faults: Faults, onRemove: (uid: PodUID) => void) {
    this.#line = line;
    this.#faults = faults;
    this.#onRemove = onRemove;
  }

  ensurePod(pod: Pod): Promise<void> {
    return this.#line.perform('ensurePod', pod.metadata.name, DEADLINE_MS, () => {
      this.pods.add(uidOf(pod));
      this.cpuMilli.set(uidOf(pod), cpuOfPod(pod));
    });
  }

  removePod(uid: PodUID): Promise<void> {
    return this.#line.perform('removePod', uid, DEADLINE_MS, () => {
      this.#onRemove(uid);
      this.cpuMilli.delete(uid);
      if (!this.#faults.has('a cgroup counts as gone and is not')) this.pods.delete(uid);
    });
  }

  listPods(): Promise<readonly PodUID[]> {
    return this.#line.perform('listPods', '', DEADLINE_MS, () => [...this.pods]);
  }
}

/** Counts events by their reason; keeps none. */
export class SimRecorder implements EventRecorder {
  readonly counts = new Map<string, number>();
  readonly #onEvent: (reason: string, object: Parameters<EventRecorder['event']>[0]) => void;

  constructor(onEvent: (reason: string, object: Parameters<EventRecorder['event']>[0]) => void) {
    this.#onEvent = onEvent;
  }

  event(object: Parameters<EventRecorder['event']>[0], _type: 'Normal' | 'Warning', reason: string): void {
    this.#onEvent(reason, object);
    this.counts.set(reason, (this.counts.get(reason) ?? 0) + 1);
  }
}

/** One ConfigMap `settings`, which is not always there and changes, and one Secret `secret`. */
export class SimObjects implements ObjectReader {
  readonly #line: Line;
  readonly #faults: Faults;
  present = true;
  /** How often it was changed. */
  #edits = 0;

  constructor(line: Line, faults: Faults) {
    this.#line = line;
    this.#faults = faults;
  }

  get settings(): ConfigMap {
    const value = this.#faults.has('the API server shows an old ConfigMap') ? 'value 0' : this.value;
    const metadata = {
      name: 'settings',
      namespace: 'demo',
      uid: 'uid-settings',
      resourceVersion: String(this.#edits + 1),
    };
    return { metadata, data: { key: value } };
  }

  /** What the ConfigMap says now. */
  get value(): string {
    return `value ${this.#edits}`;
  }

  edit(): void {
    this.#edits++;
  }

  configMap(_namespace: string, name: string): Promise<ConfigMap | undefined> {
    return this.#line.perform('configMap', name, DEADLINE_MS, () =>
      name === 'settings' && this.present ? this.settings : undefined,
    );
  }

  secret(namespace: string, name: string): Promise<Secret | undefined> {
    const metadata = { name, namespace, uid: `uid-${name}`, resourceVersion: '1' };
    const data = { password: Buffer.from('geheim').toString('base64') };
    return this.#line.perform('secret', name, DEADLINE_MS, () => (name === 'secret' ? { metadata, data } : undefined));
  }

  services(): Promise<readonly Service[]> {
    return Promise.resolve([]);
  }

  serviceAccountToken(): Promise<{ token: string; expiresAt: EpochMs }> {
    return Promise.resolve({ token: 'token', expiresAt: epochMs(0) });
  }
}
