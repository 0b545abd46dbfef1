// Which program is the lab's agent: nodelet's own, or another kubelet's binary with the flags and the configuration that it
// needs in a lab. Starts nothing but `--version`.

import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { CgroupsV1, findV1Hierarchies } from '../../../agent/node/cgroups-v1.ts';
import { CgroupsV2 } from '../../../agent/node/cgroups-v2.ts';
import { errnoOf, errorMessage, UserError } from '../../../lib/errors.ts';
import { exec } from '../../../lib/exec.ts';
import type { LabPaths } from '../../lab/paths.ts';
import { agentProgram, type Program } from '../../lab/programs.ts';
import type { LabState } from '../../lab/state.ts';

const CGROUPS = '/sys/fs/cgroup';

export type LabAgent =
  | { readonly kind: 'nodelet' }
  /** `path`: of a program that takes a kubelet's flags. */
  | { readonly kind: 'foreign'; readonly path: string };

/** "nodelet", or "kubelet=/path". Throws UserError. */
export function parseAgent(text: string): LabAgent {
  if (text === 'nodelet') return { kind: 'nodelet' };
  const path = /^kubelet=(.+)$/.exec(text)?.[1];
  if (path === undefined) throw new UserError(`--agent is nodelet or kubelet=/path, not "${text}"`);
  if (!isAbsolute(path)) throw new UserError(`--agent kubelet=${path}: give the absolute path of the program`);
  if (!isProgram(path)) throw new UserError(`--agent kubelet=${path}: there is no program that can be executed`);
  return { kind: 'foreign', path };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (error) {
    // Whatever the reason, it cannot be started.
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}

/** How a result names a foreign agent, from what its `--version` prints: "Kubernetes v1.34.2". Pure. */
export function foreignName(path: string, printed: string): string {
  const version = /^Kubernetes (v\d\S*)/.exec(printed.trim())?.[1];
  return version === undefined ? `kubelet ${path}` : `kubelet ${version}`;
}

/** "kubelet v1.34.2". A program that does not know `--version` is named by its path. Rejects with UserError. */
export async function nameOfAgent(agent: LabAgent): Promise<string> {
  if (agent.kind === 'nodelet') return 'nodelet';
  try {
    const { stdout } = await exec(agent.path, ['--version'], { timeoutMs: 10_000 });
    return foreignName(agent.path, stdout);
  } catch (error) {
    // A binary of another architecture, or a script without its first line.
    if (errnoOf(error) === undefined) throw error;
    throw new UserError(`--agent kubelet=${agent.path} cannot be started: ${errorMessage(error)}`);
  }
}

/**
 * What another kubelet needs on a machine that is not its own: it neither reserves nor enforces anything there, leaves the
 * machine's firewall alone, and accepts cgroup v1.
 */
export const FOREIGN_CONFIGURATION: Readonly<Record<string, unknown>> = {
  failCgroupV1: false,
  enforceNodeAllocatable: [],
  oomScoreAdj: 0,
  makeIPTablesUtilChains: false,
  healthzPort: 0,
  memorySwap: {},
};

function makeCgroup(path: string): void {
  const v1 = findV1Hierarchies(CGROUPS);
  const hierarchy = v1.length > 0 ? new CgroupsV1(v1) : new CgroupsV2(CGROUPS);
  hierarchy.ensure(path, {});
}

export interface AgentPlaces {
  /** A directory for certificates that a kubelet makes for itself. */
  readonly certDir: string;
  /** Wrappers of the CNI plugins, where there are any. */
  readonly cniBinDir?: string;
}

export function programOf(agent: LabAgent, places: AgentPlaces): (paths: LabPaths, state: LabState) => Program {
  return (paths, state) => {
    if (agent.kind === 'nodelet') {
      const binDir = places.cniBinDir ?? paths.cni.binDir;
      return agentProgram({ ...paths, cni: { ...paths.cni, binDir } }, state);
    }
    // A kubelet wants its cgroupRoot to be there; nodelet's agent makes it.
    makeCgroup(paths.cgroupRoot);
    return {
      command: agent.path,
      args: [
        ...['--kubeconfig', paths.kubeconfigs.agent],
        ...['--config', paths.kubeletConfig],
        ...['--hostname-override', state.nodeName],
        ...['--root-dir', paths.kubeletDir],
        ...['--cert-dir', places.certDir],
      ],
    };
  };
}
