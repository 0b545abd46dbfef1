// What running labs of one machine share: the claimed subnets, and the machine's state before the first lab. The last lab
// that stops removes it. Decides nothing.

import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FirewallSnapshot } from '../../cni/cleanup.ts';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { isErrno } from '../../lib/errors.ts';

/** One directory per lab that is or was up. */
export const LABS_DIR = '/run/nodelet';
export const CLAIM_FILE = 'claim.json';

export interface Claim {
  /** "10.244.3.0/24" */
  readonly subnet: string;
  /** The firewall as it was before the first of the labs that are up. Absent in what an older nodelet wrote. */
  readonly firewall?: FirewallSnapshot;
  /** Of the directories that labs share, those that were not there before the first of them. */
  readonly madeDirectories?: readonly string[];
  /** The lab's root. Absent in what an older nodelet wrote. */
  readonly root?: string;
}

/** Publishes the claim, before the kernel shows the subnet. */
export async function writeClaim(runDir: string, claim: Claim): Promise<void> {
  await mkdir(runDir, { recursive: true, mode: 0o711 });
  await writeFileAtomic(join(runDir, CLAIM_FILE), `${JSON.stringify(claim)}\n`);
}

/** Other labs no longer count this lab. Of two that stop at the same time at least one then finds itself the last. */
export async function withdrawClaim(runDir: string): Promise<void> {
  await rm(join(runDir, CLAIM_FILE), { force: true });
}

/** The claim in a lab's own run directory. Rejects with SyntaxError when it is damaged. */
export async function readClaim(runDir: string): Promise<Claim | undefined> {
  const text = await readFileIfExists(join(runDir, CLAIM_FILE));
  return text === undefined ? undefined : (JSON.parse(text) as Claim);
}

/** The claims of all labs but the one whose directory is named `own`. */
export async function otherClaims(own: string, directory = LABS_DIR): Promise<readonly Claim[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
  const others = names.filter((name) => name !== own).sort();
  const texts = await Promise.all(others.map((name) => readFileIfExists(join(directory, name, CLAIM_FILE))));
  return texts.filter((text) => text !== undefined).map((text): Claim => JSON.parse(text));
}
