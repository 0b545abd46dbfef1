// What a lab world needs before its first step: what has to stand between the agent and what it calls, wrappers of the CNI
// plugins, and whether the runtime and the cluster are what the experiment is about.

import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Clock } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import { poll } from '../../../lib/retry.ts';
import type { Manifest, WorldSpec } from '../model.ts';
import { isStaticPod } from '../static-pods.ts';
import type { WorldStep } from '../world.ts';
import { timedImages } from './cannot.ts';
import type { ContainerWatch } from './containers.ts';
import { cniWrapper } from './faults.ts';
import type { LabAgent } from './lab-agent.ts';

/** For giving up only. */
const SERVICE_ACCOUNT_MS = 60_000;
const LOOK_MS = 100;

/** What stands between the agent and what it calls, by what the steps need. */
export interface Needs {
  readonly apiserverLink: boolean;
  /** Stands behind the link. */
  readonly apiFaults: boolean;
  readonly runtimeLink: boolean;
  readonly criFaults: boolean;
  readonly cniFaults: boolean;
  readonly csiFaults: boolean;
  readonly staticPods: boolean;
  /** The lab's own registry: images that take a time to be pulled, or a registry that goes away. */
  readonly registry: boolean;
}

/** Pure. */
export function needsOf(steps: readonly WorldStep[], agent: LabAgent): Needs {
  const cuts = new Set(
    steps.flatMap((step) => ('cut' in step ? [step.cut.from] : 'heal' in step ? [step.heal.from] : [])),
  );
  const faults = new Set(steps.flatMap((step) => ('fault' in step ? [step.fault.on] : [])));
  return {
    apiserverLink: cuts.has('apiserver') || faults.has('api'),
    apiFaults: faults.has('api'),
    runtimeLink: cuts.has('runtime'),
    // The calls of another kubelet are known from what passes there.
    criFaults: faults.has('cri') || agent.kind === 'foreign',
    cniFaults: faults.has('cni'),
    csiFaults: faults.has('csi'),
    staticPods: steps.some((step) => 'apply' in step && step.apply.some(isStaticPod)),
    registry: cuts.has('registry') || steps.some((step) => 'apply' in step && step.apply.some(isTimed)),
  };
}

const isTimed = (manifest: Manifest): boolean => timedImages(manifest).length > 0;

/** A wrapper under the name of each plugin, and the plugins themselves in `real`. Returns the directory. */
export async function makeCniWrappers(directory: string, binDir: string): Promise<string> {
  await mkdir(join(directory, 'real'), { recursive: true });
  for (const name of await readdir(binDir)) {
    await symlink(join(binDir, name), join(directory, 'real', name));
    await writeFile(join(directory, name), cniWrapper(directory), { mode: 0o755 });
  }
  return directory;
}

/** Rejects with UserError where the experiment is about another runtime than the one that is installed. */
export async function checkRuntime({ runtime }: WorldSpec, containers: ContainerWatch): Promise<void> {
  if (runtime === undefined) return;
  const version = await containers.version();
  const wanted = runtime.replace('containerd-', '');
  const found = /^containerd v?(\d+)\.(\d+)/.exec(version);
  if (found === null || (`${found[1]}.${found[2]}` !== wanted && found[1] !== wanted))
    throw new UserError(`world.runtime: the experiment is about ${runtime}, and this machine has ${version}`);
}

/** Without it no pod is accepted. */
export async function serviceAccountReady(
  client: ApiClient,
  clock: Clock,
  signal: AbortSignal,
  namespace = 'default',
): Promise<void> {
  const path = resourcePath('v1', 'serviceaccounts', { namespace });
  const look = async (): Promise<boolean> => {
    const { items } = await client.list<{ readonly metadata: { readonly name: string } }>(path, {}, { signal });
    return items.some(({ metadata }) => metadata.name === 'default');
  };
  if (!(await poll(look, { clock, everyMs: LOOK_MS, limitMs: SERVICE_ACCOUNT_MS, signal })))
    throw new UserError('the service account "default" was not made: see the log of the control plane');
}
