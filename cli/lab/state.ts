// lab.json: the resources that one lab took of the machine, and the machine's state before. Written before anything is
// taken, read by the cleanup.

import type { FirewallSnapshot } from '../../cni/cleanup.ts';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { UserError } from '../../lib/errors.ts';
import type { NodesState } from './node/plan.ts';
import type { LabPaths } from './paths.ts';

export interface DnsState {
  readonly address: string;
  readonly server: string;
  /** Of the Service. */
  readonly serviceIP: string;
}

export interface LabState {
  readonly version: 1;
  readonly nodeName: string;
  readonly apiserverPort: number;
  readonly kubeletPort: number;
  readonly subnet: string;
  readonly network: 'agent' | 'runtime';
  /** Absent in what an older nodelet wrote: cgroupfs. */
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  /** Absent: containerd. */
  readonly runtime?: 'containerd' | 'docker';
  /** The lab has the loop-device CSI driver, started with these flags beside the lab's own. Absent: it has not. */
  readonly csi?: { readonly flags: readonly string[] };
  /** The lab forwards its Services. Absent: it does not. */
  readonly proxy?: {
    readonly mode: 'iptables' | 'nftables';
    readonly healthzPort: number;
    readonly metricsPort: number;
    readonly masqueradeAll: boolean;
  };
  /** Ports of the health and the metrics of the control plane. Absent in what an older nodelet wrote: it serves none. */
  readonly controlplane?: { readonly port: number; readonly schedulerPort: number };
  /** The lab has several nodes, each with a network namespace of its own. Absent: the machine is the one node. */
  readonly nodes?: NodesState;
  /** The lab has a DNS server at `address`, and pods' resolv.conf has `server`. Absent: it has none. */
  readonly dns?: DnsState;
  /** The lab enforces network policies. */
  readonly netpol?: boolean;
  /** Images of the usual registries are pulled from `url`, which is the lab's own registry where it has `own`. Absent: from those registries. */
  readonly registry?: { readonly url: string; readonly own?: { readonly address: string; readonly port: number } };
  /** Of the machine that is the one node: the port of their figures. */
  readonly netpolMetricsPort?: number;
  /** The firewall as it was when the lab started, or the first of those that were up then. */
  readonly firewall: FirewallSnapshot;
  /** Directories outside the root that were not there before; they go when they are empty and no other lab is up. */
  readonly madeDirectories: readonly string[];
}

/** The socket on which the lab's runtime serves CRI. */
export function runtimeSocket(paths: LabPaths, state: Pick<LabState, 'runtime'> | undefined): string {
  return state?.runtime === 'docker' ? paths.docker.shimSocket : paths.containerd.socket;
}

export async function writeLabState(paths: LabPaths, state: LabState): Promise<void> {
  await writeFileAtomic(paths.stateFile, `${JSON.stringify(state, undefined, 2)}\n`, 0o600);
}

/** Undefined when there is no lab. Rejects with UserError when the file is not what a lab wrote. */
export async function readLabState(paths: LabPaths): Promise<LabState | undefined> {
  const text = await readFileIfExists(paths.stateFile);
  if (text === undefined) return undefined;
  try {
    const state = JSON.parse(text) as LabState;
    if (state.version === 1) return state;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UserError(`${paths.stateFile} is not a lab's state: move it away`);
}
