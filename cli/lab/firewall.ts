// Removes a lab's iptables rules when the plugins that made them cannot be run: every rule that names the lab's
// network in its comment, and the chains that only such rules use. Planning is pure.

import { isErrno } from '../../lib/errors.ts';
import { type Exec, exec, execOk } from '../../lib/exec.ts';

const TOOLS = [
  ['iptables-save', 'iptables-restore'],
  ['ip6tables-save', 'ip6tables-restore'],
] as const;

/** CNI's plugins make one chain per attachment: CNI-<hash> (masquerade), CNI-DN-<hash> (port mapping). */
const ATTACHMENT_CHAIN = /^CNI-(?:DN-)?[0-9a-f]{20,}$/;

/**
 * What to feed iptables-restore --noflush so that nothing of `network` is left; undefined when nothing is there.
 * `saved` is the output of iptables-save.
 */
export function planNetworkRemoval(saved: string, network: string): string | undefined {
  const script: string[] = [];
  const marks = [`name: \\"${network}\\"`, `"name: ${network}"`, `name: \\"${network}\\" id:`];
  let rules: string[] = [];
  let table = '';
  const endTable = (): void => {
    const chains = new Set<string>();
    const removable = rules.filter((rule) => marks.some((mark) => rule.includes(mark)));
    for (const rule of removable) {
      for (const name of [/^-A (\S+)/.exec(rule)?.[1], / -j (\S+)/.exec(rule)?.[1]]) {
        if (name !== undefined && ATTACHMENT_CHAIN.test(name)) chains.add(name);
      }
    }
    // Rules inside a removable chain go with it, whatever they say.
    const inside = rules.filter((rule) => chains.has(/^-A (\S+)/.exec(rule)?.[1] ?? ''));
    const all = [...new Set([...removable, ...inside])];
    if (all.length > 0) {
      const deletions = all.map((rule) => rule.replace(/^-A/, '-D'));
      script.push(`*${table}`, ...deletions, ...[...chains].map((chain) => `-X ${chain}`), 'COMMIT');
    }
    rules = [];
  };
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1).trim();
    else if (line.startsWith('-A ')) rules.push(line);
    else if (line === 'COMMIT') endTable();
  }
  return script.length === 0 ? undefined : `${script.join('\n')}\n`;
}

/** Idempotent. Returns whether anything was there. */
export async function removeNetworkRules(network: string, run: Exec = exec): Promise<boolean> {
  let found = false;
  for (const [save, restore] of TOOLS) {
    let saved: string;
    try {
      saved = await execOk(save, [], {}, run);
    } catch (error) {
      if (isErrno(error, 'ENOENT')) continue;
      throw error;
    }
    const script = planNetworkRemoval(saved, network);
    if (script === undefined) continue;
    await execOk(restore, ['--noflush', '--wait'], { stdin: script }, run);
    found = true;
  }
  return found;
}
