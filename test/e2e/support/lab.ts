// A whole lab of a test's own, started with the same code as `nodelet up`: `startLab()`, then `kubectl(...)`, then
// `stop()`, which fails when anything of the lab is left on the machine.

import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LabOptions, type RunningLab, startLab as start } from '../../../cli/lab/lab.ts';
import type { LabPaths } from '../../../cli/lab/paths.ts';
import { runtimeSocket } from '../../../cli/lab/state.ts';
import type { ApiClient } from '../../../client/api.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { type ExecOptions, type ExecResult, exec, execOk } from '../../../lib/exec.ts';
import { compareWithMachine, snapshotMachine } from '../../../lib/machine.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { guardLab } from './guardian.ts';
import { KUBECTL_ENVIRONMENT } from './kubectl-environment.ts';
import { expectNoLostShims } from './shims.ts';

/** What runs the containers of labs whose test does not choose it: `docker`, or `containerd` by default. */
const RUNTIME = process.env['NODELET_E2E_RUNTIME'] === 'docker' ? 'docker' : 'containerd';

/** How the labs' kubectl runs. The limit is for giving up only. */
export function kubectlOptions(): ExecOptions {
  return { timeoutMs: 120_000, env: { ...process.env, ...KUBECTL_ENVIRONMENT } };
}
/** How long what the kernel takes away by itself may take. */
export const SETTLE_MS = 120_000;

export interface TestLab {
  readonly root: string;
  /** Where the test's pods are: kubectl's default one with this kubeconfig. */
  readonly namespace: string;
  readonly kubeconfig: string;
  readonly paths: LabPaths;
  readonly nodeName: string;
  readonly client: ApiClient;
  readonly lab: Pick<RunningLab, 'paths' | 'state' | 'client' | 'pid'>;
  /** kubectl from PATH; rejects unless it exits with 0. */
  kubectl(...args: string[]): Promise<string>;
  /** The same, however it exits. */
  tryKubectl(args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Stops the lab. Rejects when something of it is left. Idempotent. */
  stop(): Promise<void>;
}

/** Where the lab's runtime serves CRI: unix:///path. */
export function criEndpoint({ lab }: Pick<TestLab, 'lab'>): string {
  return `unix://${runtimeSocket(lab.paths, lab.state)}`;
}

/** Names that identify this lab's resources among those of other labs on the machine. */
export function labNames(paths: LabPaths): readonly string[] {
  return [paths.root, paths.hash, paths.bridge, paths.networkName];
}

/** A lab of the test's own, that it may kill and configure as it likes. */
export interface PrivateLab extends TestLab {
  readonly lab: RunningLab;
  /** The lines that `nodelet up` would have printed so far. */
  readonly lines: readonly string[];
}

export type TestLabOptions = Omit<LabOptions, 'root' | 'say'> & {
  /** The lab is given its root by a link to it. */
  readonly throughLink?: boolean;
  /**
   * The test kills the agent or containerd: containerd 1.6 loses a shim for good when its client goes away in the few ms in
   * which it starts one (without nodelet as well: RunPodSandbox cancelled after 64 ms). Else a lost shim is an error.
   */
  readonly kills?: boolean;
  /** Where the lab's root is made; by default with other temporary directories. */
  readonly parent?: string;
};

async function problemOf(work: Promise<void>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

export async function startLab({
  throughLink = false,
  parent = tmpdir(),
  kills = false,
  ...options
}: TestLabOptions = {}): Promise<PrivateLab> {
  const root = await mkdtemp(join(parent, 'nodelet-e2e-'));
  const link = `${root}-link`;
  if (throughLink) await symlink(root, link);
  const lines: string[] = [];
  const before = await snapshotMachine({ directories: [root] });
  const guardian = await guardLab(root);
  const lab = await start({
    images: 'build',
    runtime: RUNTIME,
    ...options,
    root: throughLink ? link : root,
    say: (line) => lines.push(line),
  }).catch(async (error: unknown) => {
    await guardian.dismiss();
    throw error;
  });
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    const lost = kills ? undefined : await problemOf(expectNoLostShims(lab.paths.containerd.socket));
    const problems = [...(lost === undefined ? [] : [lost]), ...(await lab.stop())];
    await guardian.dismiss();
    if (problems.length > 0) throw new Error(`the lab could not be cleaned: ${problems.join('; ')}`);
    const left = await compareWithMachine(before, {
      directories: [root],
      mentioning: labNames(lab.paths),
      settleMs: SETTLE_MS,
    });
    await rm(link, { force: true });
    await removeTree(root);
    if (left.length > 0) throw new Error(`the lab left something behind:\n${left.join('\n')}`);
  };
  const withConfig = (args: readonly string[]): readonly string[] => ['--kubeconfig', lab.paths.kubeconfig, ...args];
  return {
    root,
    namespace: 'default',
    kubeconfig: lab.paths.kubeconfig,
    paths: lab.paths,
    nodeName: lab.state.nodeName,
    client: lab.client,
    lab,
    lines,
    kubectl: (...args) => execOk('kubectl', withConfig(args), kubectlOptions()),
    tryKubectl: (args, more) => exec('kubectl', withConfig(args), { ...kubectlOptions(), ...more }),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
