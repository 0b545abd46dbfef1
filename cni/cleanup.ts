// What CNI plugins leave behind on purpose, for the lab to take away: attachments without a DEL, the chains that
// portmap and firewall make once and never remove, and nftables tables that came into being with them. What was there
// before, and whatever still has a user, stays.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, systemClock } from '../lib/clock.ts';
import { isErrno } from '../lib/errors.ts';
import { type Exec, exec, execOk } from '../lib/exec.ts';
import { getOwn } from '../lib/own-property.ts';
import { retry, steadyPauses } from '../lib/retry.ts';
import type { Tracer } from '../lib/trace.ts';
import { FAMILIES, type Family, parseSave, saveRules, type Table, TOOLS, targetOf } from './iptables.ts';
import { isJsonObject } from './json.ts';
import { CniRuntime, type GarbageReport } from './runtime.ts';
import { SHIM_NETWORK } from './shim/install.ts';
import type { JsonObject } from './types.ts';

/** The firewall as far as CNI plugins change it. Plain JSON: a lab keeps it from its start to its end. */
export interface FirewallSnapshot {
  /** CNI chains by address family, each "<table> <chain>". */
  readonly chains: Readonly<Record<Family, readonly string[]>>;
  /** Tables ("ip nat") and base chains ("ip nat POSTROUTING"); absent where nft is not installed. */
  readonly nft?: { readonly tables: readonly string[]; readonly chains: readonly string[] };
}

/** A plan can be overtaken by another CNI user; the kernel then refuses it whole, and it is made anew. */
const ATTEMPTS = 3;

export async function snapshotFirewall(run: Exec = exec): Promise<FirewallSnapshot> {
  const chains = { ipv4: await cniChains('ipv4', run), ipv6: await cniChains('ipv6', run) };
  const nft = await nftRuleset(run);
  if (nft === undefined) return { chains };
  return { chains, nft: { tables: tablesOf(nft).map(tableName), chains: chainsOf(nft).map(chainName) } };
}

/**
 * Removes CNI-* chains that have no user left, then nftables tables and base chains that are empty, each only when
 * `before` does not have it. Returns what was removed. Idempotent; rejects when a tool fails.
 */
export async function cleanupChains(before: FirewallSnapshot, run: Exec = exec): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const family of FAMILIES) removed.push(...(await removeChains(family, new Set(before.chains[family]), run)));
  if (before.nft === undefined) return removed;
  const ruleset = await nftRuleset(run);
  const commands = ruleset === undefined ? [] : emptyNftObjects(ruleset, before.nft);
  if (commands.length > 0) await execOk('nft', ['-f', '-'], { stdin: `${commands.join('\n')}\n` }, run);
  return [...removed, ...commands.map((command) => command.replace(/^delete /, ''))];
}

async function removeChains(family: Family, keep: ReadonlySet<string>, run: Exec): Promise<readonly string[]> {
  const [save, restore] = TOOLS[family];
  const remove = async (): Promise<readonly string[]> => {
    const saved = await saveRules(save, run);
    const plan = planChainRemoval(saved, keep);
    if (plan.removed.length === 0) return [];
    await execOk(restore, ['--noflush', '--wait'], { stdin: plan.script }, run);
    return plan.removed.map((name) => `${family} ${name}`);
  };
  // What has changed between the two commands is read anew at once.
  return await retry(remove, { clock: systemClock, policy: steadyPauses(0), maxTries: ATTEMPTS });
}

async function cniChains(family: Family, run: Exec): Promise<readonly string[]> {
  return parseSave(await saveRules(TOOLS[family][0], run)).flatMap((table) =>
    [...table.chains.keys()].filter(isCniChain).map((chain) => `${table.name} ${chain}`),
  );
}

// ---------------------------------------------------------------- iptables chains: pure

const isCniChain = (name: string): boolean => name.startsWith('CNI-');

/**
 * Chains that plugins keep as a place for rules to come, with what shows that they are unused: portmap's are idle
 * when no port is mapped, firewall's when they hold but the jump to the administrator's empty chain.
 */
function usersOfAnchor(name: string, table: Table): boolean | undefined {
  const rules = (chain: string): readonly string[] => table.chains.get(chain) ?? [];
  switch (name) {
    case 'CNI-HOSTPORT-DNAT':
      return rules(name).length > 0;
    case 'CNI-HOSTPORT-MASQ':
    case 'CNI-HOSTPORT-SETMARK':
      return rules('CNI-HOSTPORT-DNAT').length > 0;
    case 'CNI-FORWARD':
    case 'CNI-ADMIN':
      return rules('CNI-ADMIN').length > 0 || rules('CNI-FORWARD').some((rule) => targetOf(rule) !== 'CNI-ADMIN');
    case 'CNI-ISOLATION-STAGE-1':
    case 'CNI-ISOLATION-STAGE-2':
      return rules('CNI-ISOLATION-STAGE-1').length > 0 || rules('CNI-ISOLATION-STAGE-2').length > 0;
    default:
      return undefined;
  }
}

/** What to give iptables-restore --noflush; `keep` are "<table> <chain>" that stay. */
export function planChainRemoval(
  saved: string,
  keep: ReadonlySet<string>,
): { readonly script: string; readonly removed: readonly string[] } {
  const script: string[] = [];
  const removed: string[] = [];
  for (const table of parseSave(saved)) {
    const removable = idleChains(table, keep);
    if (removable.length === 0) continue;
    script.push(`*${table.name}`);
    // Rules go one by one, by their text: if one is added concurrently, the chain is not empty and the kernel
    // refuses the whole transaction, instead of losing a rule.
    for (const [chain, rules] of table.chains) {
      for (const rule of rules) {
        if (removable.includes(chain) || removable.includes(targetOf(rule) ?? '')) script.push(`-D ${chain} ${rule}`);
      }
    }
    script.push(...removable.map((chain) => `-X ${chain}`), 'COMMIT');
    removed.push(...removable.map((chain) => `${table.name} ${chain}`));
  }
  return { script: `${script.join('\n')}\n`, removed };
}

function idleChains(table: Table, keep: ReadonlySet<string>): readonly string[] {
  const removable = new Set(
    [...table.chains.keys()].filter((name) => isCniChain(name) && !keep.has(`${table.name} ${name}`)),
  );
  // A chain that stays keeps those it leads to; repeat until nothing changes.
  for (let changed = true; changed; ) {
    changed = false;
    for (const name of removable) {
      const used = usersOfAnchor(name, table) ?? false;
      // An anchor's place in a base chain is no user of it; for every other chain a rule that leads there is.
      const anchor = usersOfAnchor(name, table) !== undefined;
      const referred = [...table.chains].some(
        ([chain, rules]) =>
          !removable.has(chain) && (!anchor || isCniChain(chain)) && rules.some((rule) => targetOf(rule) === name),
      );
      if (used || referred) {
        removable.delete(name);
        changed = true;
      }
    }
  }
  return [...removable];
}

// ---------------------------------------------------------------- nftables objects

async function nftRuleset(run: Exec): Promise<readonly JsonObject[] | undefined> {
  let text: string;
  try {
    text = await execOk('nft', ['-j', 'list', 'ruleset'], {}, run);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  const parsed: unknown = JSON.parse(text);
  const list: unknown = isJsonObject(parsed) ? parsed['nftables'] : undefined;
  if (!Array.isArray(list)) throw new Error('nft -j list ruleset printed no "nftables" list');
  return list.filter(isJsonObject);
}

const objectsOf = (ruleset: readonly JsonObject[], kind: string): readonly JsonObject[] =>
  ruleset.map((entry) => getOwn(entry, kind)).filter(isJsonObject);
const tablesOf = (ruleset: readonly JsonObject[]): readonly JsonObject[] => objectsOf(ruleset, 'table');
const chainsOf = (ruleset: readonly JsonObject[]): readonly JsonObject[] => objectsOf(ruleset, 'chain');
const tableName = (table: JsonObject): string => `${table['family']} ${table['name']}`;
const tableOf = (object: JsonObject): string => `${object['family']} ${object['table']}`;
const chainName = (chain: JsonObject): string => `${tableOf(chain)} ${chain['name']}`;

/** Only tables that iptables makes are considered. */
const IPTABLES_TABLE = /^ip6? (raw|mangle|nat|filter|security)$/;

/** Commands that delete the tables and base chains that are empty and not in `before`. Pure. */
export function emptyNftObjects(
  ruleset: readonly JsonObject[],
  before: { readonly tables: readonly string[]; readonly chains: readonly string[] },
): readonly string[] {
  const busyChains = new Set(objectsOf(ruleset, 'rule').map((rule) => `${tableOf(rule)} ${rule['chain']}`));
  const chains = chainsOf(ruleset).filter((chain) => IPTABLES_TABLE.test(tableOf(chain)));
  const idle = (chain: JsonObject): boolean =>
    chain['hook'] !== undefined && chain['policy'] === 'accept' && !busyChains.has(chainName(chain));
  const otherwiseUsed = new Set(
    ruleset.flatMap((entry) =>
      Object.entries(entry).flatMap(([kind, object]) =>
        ['table', 'chain', 'rule', 'metainfo'].includes(kind) || !isJsonObject(object) ? [] : [tableOf(object)],
      ),
    ),
  );
  const commands: string[] = [];
  for (const table of tablesOf(ruleset).map(tableName)) {
    if (!IPTABLES_TABLE.test(table)) continue;
    const own = chains.filter((chain) => tableOf(chain) === table);
    if (!before.tables.includes(table) && own.every(idle) && !otherwiseUsed.has(table)) {
      commands.push(`delete table ${table}`);
      continue;
    }
    for (const chain of own) {
      if (idle(chain) && !before.chains.includes(chainName(chain))) commands.push(`delete chain ${chainName(chain)}`);
    }
  }
  return commands;
}

// ---------------------------------------------------------------- attachments

/** Where containerd's own CNI library caches the attachments that it made through the shim. */
const RUNTIME_CACHE_DIR = '/var/lib/cni';

/**
 * Undoes every attachment in a cache directory, for a lab that ends without an agent, and removes the state that the
 * container runtime, which is stopped then, keeps of the same containers. The report's failures list what could not be
 * undone.
 */
export async function releaseAllAttachments(options: {
  readonly cacheDir: string;
  readonly binDirs: readonly string[];
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly exec?: Exec;
  /** Default /var/lib/cni. */
  readonly runtimeCacheDir?: string;
}): Promise<GarbageReport> {
  const report = await new CniRuntime(options).collectGarbage(undefined, async () => true);
  const results = join(options.runtimeCacheDir ?? RUNTIME_CACHE_DIR, 'results');
  for (const { containerID, ifname } of report.removed) {
    // libcni's names: <network>-<container>-<interface>.
    for (const name of [`${SHIM_NETWORK}-${containerID}-${ifname}`, `cni-loopback-${containerID}-lo`]) {
      await rm(join(results, name), { force: true });
    }
  }
  return report;
}
