// The iptables mode: service-rules.ts and tables.ts decide the rules, script.ts what is written; this file runs iptables-save and
// iptables-restore, and remembers what was written.

import { parseSave, type Table } from '../../cni/iptables.ts';
import { type Exec, exec, execOk } from '../../lib/exec.ts';
import type { Applied, Backend, ServicePortEndpoints, ServicePortMap } from '../backend.ts';
import type { RuleOptions } from '../options.ts';
import { firstDamage, fullScript, type Parts, partialScript, removalScript } from './script.ts';
import { type ServiceRules, serviceRules, type Verbosity } from './service-rules.ts';
import { jumps, type ProxyTables, proxyTables } from './tables.ts';

/** Seconds to wait for another program's lock; with the lock of old iptables, that of a whole table. */
const LOCK_SECONDS = 5;
/** Of 30,000 rules iptables-save prints 4 MB. */
const MAX_SAVE_BYTES = 256 * 1024 * 1024;
const LIMIT_MS = 60_000;
/** Rules have no comments when there are more endpoints than this, as kube-proxy's. */
const MANY_ENDPOINTS = 1000;

/** The older iptables writes a whole table at once, however little changes. */
const WHOLE: Parts = { maxChains: Number.POSITIVE_INFINITY };
const IN_PARTS: Parts = { maxChains: 1000 };

interface Written {
  readonly tables: ProxyTables;
  readonly options: RuleOptions;
}

export class IptablesBackend implements Backend {
  readonly #owner: string;
  readonly #run: Exec;
  #rules = new Map<string, { readonly from: ServicePortEndpoints; readonly rules: ServiceRules }>();
  #verbosity: Verbosity = { comments: true };
  #options: RuleOptions | undefined;
  #written: Written | undefined;
  #parts = WHOLE;

  /** `owner`: written beside the rules, so that others see whose they are. */
  constructor(owner: string, run: Exec = exec) {
    this.#owner = owner;
    this.#run = run;
  }

  async apply(portMap: ServicePortMap, options: RuleOptions, full: boolean): Promise<Applied> {
    const services = this.#rulesOf(portMap, options);
    const tables = proxyTables(services, options);
    const before = this.#written;
    const leading = jumps(options);
    let script: string;
    if (full || before === undefined) {
      this.#parts = await partsFor(this.#run);
      script = fullScript(tables, leading, await readTables(this.#run), this.#owner, this.#parts);
    } else script = partialScript(before.tables, tables, this.#parts);
    // Until it is known how this ends, nothing is known.
    this.#written = undefined;
    if (script !== '') await restore(script, this.#run);
    this.#written = { tables, options };
    return { total: countTables(tables), written: countScript(script), withoutLocal: countWithoutLocal(services) };
  }

  async damage(): Promise<string | undefined> {
    if (this.#written === undefined) return 'nothing is known of the rules';
    const { tables, options } = this.#written;
    return firstDamage(tables, jumps(options), await readTables(this.#run));
  }

  /** Only those are made anew of which something has changed. */
  #rulesOf(portMap: ServicePortMap, options: RuleOptions): readonly ServiceRules[] {
    let endpoints = 0;
    for (const { reachable } of portMap.values()) endpoints += reachable.all.length;
    const comments = endpoints <= MANY_ENDPOINTS;
    const same = this.#options === options && this.#verbosity.comments === comments;
    const known = same ? this.#rules : new Map<string, { from: ServicePortEndpoints; rules: ServiceRules }>();
    this.#options = options;
    this.#verbosity = { comments };
    const next = new Map<string, { from: ServicePortEndpoints; rules: ServiceRules }>();
    for (const [key, from] of portMap) {
      const before = known.get(key);
      const rules =
        before?.from === from ? before.rules : serviceRules(from.port, from.reachable, options, this.#verbosity);
      next.set(key, { from, rules });
    }
    this.#rules = next;
    return [...next.values()].map(({ rules }) => rules);
  }
}

/** The tables filter, nat and mangle, as far as they are there. */
export async function readTables(run: Exec = exec): Promise<readonly Table[]> {
  const options = { timeoutMs: LIMIT_MS, maxOutputBytes: MAX_SAVE_BYTES };
  return parseSave(await execOk('iptables-save', [], options, run));
}

async function partsFor(run: Exec): Promise<Parts> {
  const version = await execOk('iptables-restore', ['--version'], { timeoutMs: LIMIT_MS }, run);
  return version.includes('nf_tables') ? IN_PARTS : WHOLE;
}

async function restore(script: string, run: Exec): Promise<void> {
  const args = ['--noflush', '--counters', '-w', String(LOCK_SECONDS)];
  await execOk('iptables-restore', args, { stdin: script, timeoutMs: LIMIT_MS }, run);
}

/** Takes away everything of a proxy in this network namespace. Returns whether anything was there. Idempotent. */
export async function removeProxyRules(run: Exec = exec): Promise<boolean> {
  const script = removalScript(await readTables(run));
  if (script === '') return false;
  await restore(script, run);
  return true;
}

function countTables({ filter, shared, services }: ProxyTables): Record<string, number> {
  const count = (chains: ReadonlyMap<string, readonly string[]>): number => {
    let sum = 0;
    for (const rules of chains.values()) sum += rules.length;
    return sum;
  };
  return { filter: count(filter), nat: services.reduce((sum, { own }) => sum + count(own), count(shared)) };
}

function countScript(script: string): Record<string, number> {
  const counts = { filter: 0, nat: 0 };
  let table = '';
  for (const line of script.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    else if (line.startsWith('-A ') && (table === 'filter' || table === 'nat')) counts[table]++;
  }
  return counts;
}

function countWithoutLocal(services: readonly ServiceRules[]): Applied['withoutLocal'] {
  const count = (kind: 'internal' | 'external'): number =>
    services.filter(({ withoutLocal }) => withoutLocal.includes(kind)).length;
  return { internal: count('internal'), external: count('external') };
}
