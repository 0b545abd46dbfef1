// The nftables mode: service-objects.ts and table.ts decide what the table has, and by which commands; this file runs nft.

import { errorMessage } from '../../lib/errors.ts';
import { type Exec, exec, execOk } from '../../lib/exec.ts';
import type { Applied, Backend, Programme, Programmed } from '../backend.ts';
import type { RuleOptions } from '../options.ts';
import { TABLE } from './names.ts';
import { type ServiceObjects, serviceObjects } from './service-objects.ts';
import {
  changeCommands,
  firstDamage,
  fullCommands,
  leftBehind,
  type NftTable,
  nftTable,
  removalCommands,
} from './table.ts';

const LIMIT_MS = 60_000;
const MAX_LIST_BYTES = 256 * 1024 * 1024;

export class NftablesBackend implements Backend {
  readonly #owner: string;
  readonly #run: Exec;
  #objects = new Map<string, { readonly from: Programmed; readonly objects: ServiceObjects }>();
  #options: RuleOptions | undefined;
  #written: NftTable | undefined;
  /** What nothing leads to any longer. */
  readonly #stale = { chains: new Set<string>(), sets: new Set<string>() };

  constructor(owner: string, run: Exec = exec) {
    this.#owner = owner;
    this.#run = run;
  }

  async apply(programme: Programme, options: RuleOptions, full: boolean): Promise<Applied> {
    const services = this.#objectsOf(programme, options);
    const table = nftTable(services, options);
    const before = this.#written;
    const isWhole = full || before === undefined;
    const change = isWhole ? fullCommands(table, this.#owner) : changeCommands(before, table);
    // Until it is known how this ends, nothing is known.
    this.#written = undefined;
    if (change !== '') await this.#nft(change);
    if (isWhole) this.#forgetStale();
    else {
      const { chains, sets } = leftBehind(before, table);
      for (const name of chains) this.#stale.chains.add(name);
      for (const name of sets) this.#stale.sets.add(name);
    }
    this.#written = table;
    const count = (kind: 'internal' | 'external'): number =>
      services.filter(({ withoutLocal }) => withoutLocal.includes(kind)).length;
    return {
      total: { 'ip kube-proxy': rulesIn(table) },
      written: { 'ip kube-proxy': change.split('\n').filter((line) => line.startsWith('add rule ')).length },
      withoutLocal: { internal: count('internal'), external: count('external') },
    };
  }

  async damage(): Promise<string | undefined> {
    if (this.#written === undefined) return 'nothing is known of the rules';
    await this.#removeStale(this.#written);
    const args = ['-j', 'list', 'table', ...TABLE.split(' ')];
    const listed = await this.#run('nft', args, { timeoutMs: LIMIT_MS, maxOutputBytes: MAX_LIST_BYTES });
    if (listed.code !== 0) return `table ${TABLE} is gone`;
    try {
      return firstDamage(this.#written, listed.stdout);
    } catch (error) {
      if (error instanceof SyntaxError) return `nft lists the table in another form: ${errorMessage(error)}`;
      throw error;
    }
  }

  async #removeStale(table: NftTable): Promise<void> {
    const { chains, sets } = this.#stale;
    const removal = removalCommands(table, chains, sets);
    this.#forgetStale();
    if (removal !== '') await this.#nft(removal);
  }

  #forgetStale(): void {
    this.#stale.chains.clear();
    this.#stale.sets.clear();
  }

  #nft(commands: string): Promise<string> {
    return execOk('nft', ['-f', '-'], { stdin: commands, timeoutMs: LIMIT_MS }, this.#run);
  }

  #objectsOf(programme: Programme, options: RuleOptions): readonly ServiceObjects[] {
    const known =
      this.#options === options ? this.#objects : new Map<string, { from: Programmed; objects: ServiceObjects }>();
    this.#options = options;
    const next = new Map<string, { from: Programmed; objects: ServiceObjects }>();
    for (const [key, from] of programme) {
      const before = known.get(key);
      const objects = before?.from === from ? before.objects : serviceObjects(from.port, from.reachable, options);
      next.set(key, { from, objects });
    }
    this.#objects = next;
    return [...next.values()].map(({ objects }) => objects);
  }
}

function rulesIn({ chains }: NftTable): number {
  return [...chains.values()].reduce((sum, { rules }) => sum + rules.length, 0);
}

/** Whose table it is; '' where that is not known, undefined where there is none. */
export async function tableOwner(run: Exec = exec): Promise<string | undefined> {
  const { code, stdout } = await run('nft', ['-t', 'list', 'table', ...TABLE.split(' ')], {
    timeoutMs: LIMIT_MS,
    maxOutputBytes: MAX_LIST_BYTES,
  });
  return code === 0 ? (/comment "rules for kube-proxy of ([^"]+)"/.exec(stdout)?.[1] ?? '') : undefined;
}

/** Takes away everything of a proxy in this network namespace. Idempotent. */
export async function removeProxyTable(run: Exec = exec): Promise<void> {
  // `delete` alone fails where it is not there.
  await execOk('nft', ['-f', '-'], { stdin: `add table ${TABLE}\ndelete table ${TABLE}\n` }, run);
}
