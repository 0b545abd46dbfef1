// The network of a simulated node: a small pool of addresses, one for each sandbox. As with CNI, an address is held from
// ADD to DEL, whatever becomes of the sandbox meanwhile; both may fail.

import type { Sandbox } from './cri/state.ts';
import type { Dice } from './dice.ts';
import type { Faults } from './faults.ts';

/** What the container runtime does about the network of a sandbox. */
export interface SandboxNetwork {
  /** Makes a network namespace; returns its path. */
  makeNamespace(sandboxId: string): string;
  /** The namespace goes. Idempotent. */
  removeNamespace(sandbox: Sandbox): void;
  /** CNI ADD. Returns the addresses. */
  add(sandbox: Sandbox): Promise<readonly string[]>;
  /** CNI DEL. */
  del(sandbox: Sandbox): Promise<void>;
  /** The runtime has forgotten a sandbox whose network it could not give back. */
  abandon(sandbox: Sandbox): void;
}

/** Few, so that one that is not given back is soon missed, and one that is is soon used again. */
const POOL = 24;

export class SimNetwork implements SandboxNetwork {
  readonly #dice: Dice;
  readonly #faults: Faults;
  /** Sandboxes by address. */
  readonly leases = new Map<string, string>();
  /** Sandboxes that the runtime has forgotten although something of their network was left. */
  readonly abandoned = new Set<string>();
  /** How many calls of a hundred go wrong. */
  trouble = 0;

  constructor(dice: Dice, faults: Faults) {
    this.#dice = dice;
    this.#faults = faults;
  }

  makeNamespace(sandboxId: string): string {
    return `/run/netns/${sandboxId}`;
  }

  removeNamespace(sandbox: Sandbox): void {
    sandbox.netns = '';
  }

  abandon({ id }: Sandbox): void {
    this.abandoned.add(id);
  }

  /** Throws when a plugin fails; then nothing is held. */
  async add({ id }: Sandbox): Promise<readonly string[]> {
    this.#mayFail('ADD');
    for (let host = 2; host < 2 + POOL; host++) {
      const address = `10.85.0.${host}`;
      if (this.leases.has(address)) continue;
      this.leases.set(address, id);
      return [address];
    }
    throw new Error('plugin type="host-local" failed (add): no IP addresses available in range set');
  }

  /** Idempotent. Throws when a plugin fails; then the address is still held. */
  async del({ id }: Sandbox): Promise<void> {
    this.#mayFail('DEL');
    if (this.#faults.has('CNI DEL gives no address back')) return;
    for (const [address, holder] of this.leases) if (holder === id) this.leases.delete(address);
  }

  #mayFail(command: string): void {
    if (this.trouble > 0 && this.#dice.below(100) < this.trouble) {
      throw new Error(`plugin type="bridge" failed (${command}): netlink receive: resource busy`);
    }
  }
}
