// The network of a simulated node as its CNI plugins make it: namespaces, and a small pool of addresses, one for each
// attachment. The plugins are programs that the agent runs: they take time, fail, hang and are killed half-way.

import { basename } from 'node:path';
import { isJsonObject } from '../../cni/json.ts';
import type { JsonObject, NetworkConfigList } from '../../cni/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ExecOptions, ExecResult } from '../../lib/exec.ts';
import type { Dice } from './dice.ts';
import type { Faults } from './faults.ts';
import type { Journal } from './journal.ts';
import type { Weather } from './weather.ts';
import type { Breakable } from './witness.ts';

export interface SimNetworkParts {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly rules: Breakable;
  readonly faults: Faults;
  readonly weather: Weather;
}

/** Few, so that one that is not given back is soon missed, and one that is is soon used again. */
const POOL = 24;
/** Where network namespaces are. */
export const NAMESPACES = '/run/netns/';
/** The chain that every attachment goes through. */
export const NETWORK: NetworkConfigList = {
  name: 'pods',
  cniVersion: '1.1.0',
  disableCheck: false,
  disableGC: false,
  plugins: [{ type: 'bridge', ipam: { type: 'host-local' } }, { type: 'portmap' }],
};
/** The programs that the chain needs. */
export const PLUGINS = ['bridge', 'host-local', 'portmap'] as const;

/** A plugin that fails, or takes longer. */
export type PluginInjection =
  | { readonly kind: 'failed'; readonly message: string; readonly code: number }
  | { readonly kind: 'delayed'; readonly ms: number };

const DONE: ExecResult = { code: 0, signal: null, timedOut: false, stdout: '', stderr: '' };

export class SimNetwork {
  readonly #parts: SimNetworkParts;
  /** How many addresses there are. */
  pool = POOL;
  /** Sandboxes by address. */
  readonly leases = new Map<string, string>();
  /** Sandboxes that have a namespace. */
  readonly namespaces = new Set<string>();
  /** Sandboxes that the runtime has forgotten although something of their network was left. */
  readonly abandoned = new Set<string>();
  /** How many plugins of a hundred go wrong. */
  trouble = 0;
  /** Chooses calls that go wrong on purpose: `call` is "ADD bridge". */
  inject: ((call: string, sandboxId: string) => PluginInjection | undefined) | undefined;

  constructor(parts: SimNetworkParts) {
    this.#parts = parts;
  }

  /** Makes a network namespace; returns its path. */
  makeNamespace(sandboxId: string): string {
    this.namespaces.add(sandboxId);
    return `${NAMESPACES}${sandboxId}`;
  }

  removeNamespace(sandboxId: string): void {
    this.namespaces.delete(sandboxId);
  }

  isNamespace(path: string): boolean {
    return path.startsWith(NAMESPACES) && this.namespaces.has(path.slice(NAMESPACES.length));
  }

  /** Runs a plugin, as Exec does. What it has done stays done, whatever becomes of its caller. */
  async exec(
    file: string,
    _args: readonly string[],
    { env = {}, stdin, timeoutMs }: ExecOptions = {},
  ): Promise<ExecResult> {
    const { clock, dice, journal, weather } = this.#parts;
    const type = basename(file);
    const command = env['CNI_COMMAND'] ?? '';
    const id = env['CNI_CONTAINERID'] ?? '';
    const netconf: unknown = JSON.parse(String(stdin));
    if (!isJsonObject(netconf)) throw new Error(`plugin ${type} was given no configuration`);
    const fate = dice.below(100) < this.trouble ? dice.weighted({ refused: 5, killed: 2, hangs: 1 }) : 'done';
    journal.note(`plugin ${type} ${command} ${id}${fate === 'done' ? '' : `: ${fate}`}`);
    if (fate !== 'done') weather.bad(timeoutMs);
    const injected = this.inject?.(`${command} ${type}`, id);
    if (injected?.kind === 'failed') return failed(injected.message, injected.code);
    if (injected?.kind === 'delayed') await clock.sleep(Math.min(injected.ms, timeoutMs ?? injected.ms));
    if (injected?.kind === 'delayed' && injected.ms >= (timeoutMs ?? Number.POSITIVE_INFINITY)) {
      return { ...DONE, code: null, signal: 'SIGKILL', timedOut: true };
    }
    await clock.sleep(dice.pick([1, 4, 30]));
    if (fate === 'refused') return failed('netlink receive: resource busy');
    const result = this.#run(type, command, id, netconf, env['CNI_NETNS'] ?? '');
    if (fate === 'killed') return { ...DONE, code: null, signal: 'SIGKILL' };
    if (fate === 'hangs') {
      await clock.sleep(timeoutMs ?? 0);
      return { ...DONE, code: null, signal: 'SIGKILL', timedOut: true };
    }
    return result;
  }

  #run(type: string, command: string, id: string, netconf: JsonObject, netns: string): ExecResult {
    if (command === 'ADD') return type === 'bridge' ? this.#add(id, netns) : printed(netconf['prevResult']);
    if (type === 'bridge' && command === 'DEL') this.#del(id);
    if (type === 'bridge' && command === 'GC') this.#collect(netconf['cni.dev/valid-attachments']);
    return DONE;
  }

  #add(id: string, netns: string): ExecResult {
    if ([...this.leases.values()].includes(id)) {
      this.#parts.rules.break(`sandbox ${id} was to be given a second address`);
      return failed('duplicate allocation is not allowed');
    }
    if (!this.isNamespace(netns)) return failed(`failed to open netns "${netns}"`);
    for (let host = 2; host < 2 + this.pool; host++) {
      const address = `10.85.0.${host}`;
      if (this.leases.has(address) && !this.#parts.faults.has('CNI ADD gives an address twice')) continue;
      this.leases.set(address, id);
      return printed({
        cniVersion: NETWORK.cniVersion,
        interfaces: [{ name: 'cni0' }, { name: `veth${host}` }, { name: 'eth0', sandbox: netns }],
        ips: [{ address: `${address}/16`, gateway: '10.85.0.1', interface: 2 }],
        dns: {},
      });
    }
    return failed('no IP addresses available in range set');
  }

  #del(id: string): void {
    if (this.#parts.faults.has('CNI DEL gives no address back')) return;
    for (const [address, holder] of this.leases) if (holder === id) this.leases.delete(address);
  }

  /** Frees what is attached and not among `valid`. */
  #collect(valid: unknown): void {
    const kept = new Set(
      Array.isArray(valid) ? valid.map((ref: unknown) => (isJsonObject(ref) ? ref['containerID'] : '')) : [],
    );
    for (const [address, holder] of this.leases) if (!kept.has(holder)) this.leases.delete(address);
  }
}

function printed(result: unknown): ExecResult {
  return { ...DONE, stdout: JSON.stringify(result) };
}

function failed(msg: string, code = 999): ExecResult {
  return { ...DONE, code: 1, stdout: JSON.stringify({ cniVersion: NETWORK.cniVersion, code, msg }) };
}
