// Reads iptables rules, and removes the one chain that the reference plugins leave behind. Reads with iptables-save and
// writes with iptables-restore, which applies all or nothing.

import { createHash } from 'node:crypto';
import { isErrno } from '../lib/errors.ts';
import { type Exec, execOk } from '../lib/exec.ts';

export type Family = 'ipv4' | 'ipv6';
export const TOOLS = {
  ipv4: ['iptables-save', 'iptables-restore'],
  ipv6: ['ip6tables-save', 'ip6tables-restore'],
} as const;
export const FAMILIES: readonly Family[] = ['ipv4', 'ipv6'];
export interface Table {
  readonly name: string;
  /** Rules by chain, each the text after "-A <chain> ". */
  readonly chains: ReadonlyMap<string, readonly string[]>;
}

/** Reads the output of iptables-save. */
export function parseSave(text: string): readonly Table[] {
  const tables: { name: string; chains: Map<string, string[]> }[] = [];
  for (const line of text.split('\n')) {
    const table = tables.at(-1);
    if (line.startsWith('*')) tables.push({ name: line.slice(1).trim(), chains: new Map() });
    else if (line.startsWith(':')) table?.chains.set(line.slice(1).split(' ')[0] ?? '', []);
    else if (line.startsWith('-A ')) {
      const [, chain = '', rule = ''] = /^-A (\S+) ?(.*)$/.exec(line) ?? [];
      table?.chains.get(chain)?.push(rule);
    }
  }
  return tables;
}

/** The chain a rule jumps or goes to. Comments, which may contain anything, are skipped. */
export function targetOf(rule: string): string | undefined {
  const bare = ` ${rule} `.replace(/ --comment (?:"(?:[^"\\]|\\.)*"|\S+)/g, '');
  return / -[jg] (\S+)/.exec(bare)?.[1];
}

/** '' where the machine has no iptables, or none for this family: no plugin can have made chains there. */
export async function saveRules(tool: string, run: Exec): Promise<string> {
  try {
    return await execOk(tool, [], {}, run);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return '';
    throw error;
  }
}

/** The chain that bridge and ptp make with ipMasq for one container: 28 characters, of a hash of both names. */
export function masqueradeChain(network: string, containerId: string): string {
  return `CNI-${createHash('sha512').update(`${network}${containerId}`).digest('hex')}`.slice(0, 28);
}

/**
 * Removes the masquerading rules of one attachment. bridge and ptp do so by the addresses they find in the network
 * namespace, and leave the rules for good when that went first. Idempotent.
 */
export async function removeMasquerade(network: string, containerId: string, run: Exec): Promise<void> {
  const chain = masqueradeChain(network, containerId);
  for (const family of FAMILIES) {
    const [save, restore] = TOOLS[family];
    const nat = parseSave(await saveRules(save, run)).find((table) => table.name === 'nat');
    if (nat?.chains.has(chain) !== true) continue;
    const leading = [...nat.chains].flatMap(([from, rules]) =>
      rules.filter((rule) => targetOf(rule) === chain).map((rule) => `-D ${from} ${rule}`),
    );
    const script = ['*nat', ...leading, `-F ${chain}`, `-X ${chain}`, 'COMMIT'].join('\n');
    await execOk(restore, ['--noflush', '--wait'], { stdin: `${script}\n` }, run);
  }
}
