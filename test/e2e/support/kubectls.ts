// Which kubectls the tests run, and how much with each: everything with the oldest and the newest, and with those between
// only what differs from version to version (discovery, OpenAPI, streaming protocols, what apply sends).

import { delimiter } from 'node:path';
import { test } from 'vitest';
import { exec } from '../../../lib/exec.ts';

export interface KubectlVersion {
  /** Path or name of the executable. */
  readonly command: string;
  /** "1.31" */
  readonly version: string;
  /** Everything is run with it, not only the short list. */
  readonly full: boolean;
}

/** Pure. Sorted from the oldest to the newest. */
export function withLists(found: readonly Omit<KubectlVersion, 'full'>[]): readonly KubectlVersion[] {
  const minor = ({ version }: { readonly version: string }): number => Number(version.split('.')[1]);
  const sorted = found.toSorted((a, b) => minor(a) - minor(b));
  return sorted.map((each, index) => ({ ...each, full: index === 0 || index === sorted.length - 1 }));
}

/**
 * The kubectls to test: those in NODELET_KUBECTLS (paths, separated by colons), else the one in PATH. Throws when
 * there is none: without a client nothing is shown.
 */
export async function kubectls(): Promise<readonly KubectlVersion[]> {
  const listed = (process.env['NODELET_KUBECTLS'] ?? '').split(delimiter).filter((path) => path !== '');
  const commands = listed.length > 0 ? listed : ['kubectl'];
  return withLists(
    await Promise.all(commands.map(async (command) => ({ command, version: await versionOf(command) }))),
  );
}

async function versionOf(command: string): Promise<string> {
  const how = 'put kubectl (1.27 to 1.33) into PATH or list paths in NODELET_KUBECTLS, separated by colons';
  let text: string;
  try {
    text = (await exec(command, ['version', '--client', '-o', 'json'])).stdout;
  } catch (error) {
    throw new Error(`cannot run kubectl as "${command}": ${how}`, { cause: error });
  }
  const match = /"gitVersion":\s*"v(\d+\.\d+)/.exec(text);
  if (match?.[1] === undefined) throw new Error(`"${command} version" names no version: ${text}`);
  return match[1];
}

/** `test` for what is only on the full list: with a kubectl between the oldest and the newest it is no test at all. */
export function onFullList({ full }: Pick<KubectlVersion, 'full'>): (name: string, body: () => Promise<void>) => void {
  return (name, body) => {
    if (full) test(name, body);
  };
}
