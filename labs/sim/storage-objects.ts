// The API server's storage objects of a simulated cluster: some claims, each bound to a volume of the simulated driver,
// and attachments that a controller makes, late or at once. Reading them goes over a line that may be bad.

import type { StorageObjects } from '../../agent/ports/storage.ts';
import { attachmentName } from '../../agent/volumes/csi/layout.ts';
import type { Clock } from '../../lib/clock.ts';
import { DRIVER_NAME } from './csi-driver.ts';
import type { Dice } from './dice.ts';
import type { Line } from './line.ts';

type Claim = NonNullable<Awaited<ReturnType<StorageObjects['claim']>>>;
type Volume = NonNullable<Awaited<ReturnType<StorageObjects['volume']>>>;
type Driver = NonNullable<Awaited<ReturnType<StorageObjects['csiDriver']>>>;
type OnAttachment = Parameters<StorageObjects['followAttachment']>[1];

const DEADLINE_MS = 30_000;

/** Claims by name, and how each may be used. */
export const CLAIMS = {
  'claim-0': 'ReadWriteOnce',
  'claim-1': 'ReadWriteMany',
  'claim-2': 'ReadWriteOncePod',
} as const;
export type ClaimName = keyof typeof CLAIMS;

const volumeOf = (claim: string): string => claim.replace('claim', 'pv');

export class SimStorage implements StorageObjects {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #line: Line;
  readonly #nodeName: string;
  readonly #attached = new Set<string>();
  readonly #followers = new Map<string, Set<() => void>>();
  #version = 1;

  constructor(clock: Clock, dice: Dice, line: Line, nodeName: string) {
    this.#clock = clock;
    this.#dice = dice;
    this.#line = line;
    this.#nodeName = nodeName;
  }

  claim(namespace: string, name: string): Promise<Claim | undefined> {
    return this.#line.perform('claim', name, DEADLINE_MS, () => this.#claim(namespace, name));
  }

  #claim(namespace: string, name: string): Claim | undefined {
    if (!Object.hasOwn(CLAIMS, name)) return undefined;
    const accessModes = [CLAIMS[name as ClaimName]];
    return {
      metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: '1' },
      spec: { volumeName: volumeOf(name), accessModes },
      status: { phase: 'Bound', accessModes },
    };
  }

  volume(name: string): Promise<Volume | undefined> {
    const claim = name.replace('pv', 'claim');
    return this.#line.perform('volume', name, DEADLINE_MS, () => ({
      metadata: { name, uid: `uid-${name}`, resourceVersion: '1' },
      spec: {
        accessModes: [Object.hasOwn(CLAIMS, claim) ? CLAIMS[claim as ClaimName] : 'ReadWriteOnce'],
        claimRef: { uid: `uid-${claim}` },
        csi: { driver: DRIVER_NAME, volumeHandle: `handle-${name}`, fsType: 'ext4' },
      },
    }));
  }

  csiDriver(name: string): Promise<Driver | undefined> {
    return this.#line.perform('csiDriver', name, DEADLINE_MS, () => ({
      metadata: { name, uid: 'uid-driver', resourceVersion: '1' },
      spec: { attachRequired: true, podInfoOnMount: true, volumeLifecycleModes: ['Persistent', 'Ephemeral'] },
    }));
  }

  /** After the first read of an attachment the controller attaches it, sooner or later. */
  followAttachment(name: string, onState: OnAttachment, signal: AbortSignal): void {
    const tell = (): void => {
      if (signal.aborted) return;
      const attached = this.#attached.has(name);
      const metadata = { name, uid: `uid-${name}`, resourceVersion: String(this.#version) };
      const spec = { attacher: DRIVER_NAME, nodeName: this.#nodeName, source: {} };
      onState(attached ? { metadata, spec, status: { attached } } : undefined);
    };
    const followers = this.#followers.get(name) ?? new Set();
    this.#followers.set(name, followers.add(tell));
    signal.addEventListener('abort', () => followers.delete(tell), { once: true });
    this.#clock.after(1, tell);
    if (!this.#attached.has(name)) this.#clock.after(this.#dice.pick([5, 500, 20_000]), () => this.#attach(name));
  }

  #attach(name: string): void {
    this.#attached.add(name);
    this.#version++;
    for (const tell of [...(this.#followers.get(name) ?? [])]) tell();
  }

  /** The controller detaches a volume that no pod uses any more. */
  detach(claim: ClaimName): void {
    this.#attached.delete(attachmentName(`handle-${volumeOf(claim)}`, DRIVER_NAME, this.#nodeName));
    this.#version++;
  }

  followClaim(namespace: string, name: string, onState: (claim: Claim | undefined) => void, signal: AbortSignal): void {
    this.#clock.after(1, () => {
      if (!signal.aborted) onState(this.#claim(namespace, name));
    });
  }

  patchClaimStatus(claim: Claim): Promise<Claim> {
    return Promise.resolve(claim);
  }
}
