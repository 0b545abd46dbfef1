// Who forwards Services in this network namespace: one proxy alone, as kube-proxy's chains have the same names everywhere, and the
// addresses of Services are the same in every lab. The claim is the chain KUBE-PROXY-CANARY, which can be made only once, with
// the name of the lab in it.

import { join } from 'node:path';
import { readFileIfExists } from '../../lib/atomic.ts';
import { type Exec, exec, execOk } from '../../lib/exec.ts';
import { readTables, removeProxyRules } from '../../proxy/iptables/iptables.ts';
import { CANARY } from '../../proxy/iptables/names.ts';
import { ownerOf, ownerRule } from '../../proxy/iptables/script.ts';
import { removeProxyTable, tableOwner } from '../../proxy/nftables/nftables.ts';
import { CLAIM_FILE, LABS_DIR } from './claims.ts';
import { exists } from './root.ts';

const LAB_NAME = /^nodelet-([0-9a-f]{8})$/;

/** Undefined: this lab has it from now on; else who has it, in words. `name`: the lab's network name. */
export async function claimProxy(name: string, directory = LABS_DIR, run: Exec = exec): Promise<string | undefined> {
  const owner = ownerOf(await readTables(run)) ?? (await tableOwner(run));
  if (owner !== undefined && owner !== name) {
    const hash = LAB_NAME.exec(owner)?.[1];
    const isGone = hash !== undefined && !(await exists(join(directory, hash, CLAIM_FILE)));
    if (!isGone) return hash === undefined ? 'a proxy that is none of a lab' : `the lab ${owner}`;
    await removeProxy(run);
  }
  const made = await run('iptables', ['-w', '-t', 'nat', '-N', CANARY]);
  // It is there: of this lab, from an earlier run, or of one that was faster.
  if (made.code !== 0) return ownerOf(await readTables(run)) === name ? undefined : 'another lab that starts now';
  const mark = { stdin: `*nat\n-A ${CANARY} ${ownerRule(name)}\nCOMMIT\n` };
  await execOk('iptables-restore', ['--noflush', '-w'], mark, run);
  return undefined;
}

async function removeProxy(run: Exec): Promise<void> {
  await removeProxyRules(run);
  await removeProxyTable(run);
}

/** Takes away every rule of this lab's proxy. Idempotent; leaves another's alone. */
export async function removeLabProxy(name: string, run: Exec = exec): Promise<void> {
  if (ownerOf(await readTables(run)) === name) await removeProxyRules(run);
  if ((await tableOwner(run)) === name) await removeProxyTable(run);
}

/** Whether bridged packets pass iptables: else a pod's answer to a pod beside it does not come back by the Service's address. */
export async function bridgesAreFiltered(): Promise<boolean> {
  return (await readFileIfExists('/proc/sys/net/bridge/bridge-nf-call-iptables'))?.trim() === '1';
}
