// The network of a simulated node: a small pool of addresses, one for each sandbox. As with CNI, an address is held from
// ADD to DEL, whatever becomes of the sandbox meanwhile; both may fail.

import type { SandboxId } from '../../../agent/ports/runtime.ts';
import type { Dice } from './dice.ts';
import type { Faults } from './faults.ts';

/** Few, so that one that is not given back is soon missed, and one that is is soon used again. */
const POOL = 24;

export class SimNetwork {
  readonly #dice: Dice;
  readonly #faults: Faults;
  /** By address. */
  readonly leases = new Map<string, SandboxId>();
  /** How many calls of a hundred go wrong. */
  trouble = 0;

  constructor(dice: Dice, faults: Faults) {
    this.#dice = dice;
    this.#faults = faults;
  }

  /** CNI ADD. Throws when a plugin fails; then nothing is held. */
  add(sandbox: SandboxId): string {
    this.#mayFail('ADD');
    for (let host = 2; host < 2 + POOL; host++) {
      const address = `10.85.0.${host}`;
      if (this.leases.has(address)) continue;
      this.leases.set(address, sandbox);
      return address;
    }
    throw new Error('plugin type="host-local" failed (add): no IP addresses available in range set');
  }

  /** CNI DEL: idempotent. Throws when a plugin fails; then the address is still held. */
  delete(sandbox: SandboxId): void {
    this.#mayFail('DEL');
    if (this.#faults.has('CNI DEL gives no address back')) return;
    for (const [address, holder] of this.leases) if (holder === sandbox) this.leases.delete(address);
  }

  #mayFail(command: string): void {
    if (this.trouble > 0 && this.#dice.below(100) < this.trouble) {
      throw new Error(`plugin type="bridge" failed (${command}): netlink receive: resource busy`);
    }
  }
}
