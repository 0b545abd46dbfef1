// The configuration of the one node that is the machine itself: its CNI chain, its agent's and its containerd's.

import { mkdir } from 'node:fs/promises';
import type { Pki } from '../../apiserver/pki/types.ts';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { exec } from '../../lib/exec.ts';
import { labContainerdPaths } from './clean.ts';
import { forwardPolicyDrops, renderConflist, renderKubeletConfiguration } from './config.ts';
import { type Snapshotter, writeContainerdConfig } from './containerd.ts';
import { lastPodAddress } from './load-balancers.ts';
import type { LabOptions } from './options.ts';
import type { LabPaths } from './paths.ts';
import { type LabState, runtimeSocket } from './state.ts';

export async function writeMachineFiles(
  paths: LabPaths,
  state: LabState,
  pki: Pki,
  { kubeletConfiguration = {}, podAddresses }: Pick<LabOptions, 'kubeletConfiguration' | 'podAddresses'>,
): Promise<Snapshotter> {
  const forward = await exec('iptables', ['-S', 'FORWARD']);
  const { subnet } = state;
  const rangeEnd = lastPodAddress(subnet, podAddresses);
  const choice = { subnet, rangeEnd, forwardDrops: forwardPolicyDrops(forward.stdout) };
  await writeFileAtomic(paths.cni.conflist, renderConflist(paths, choice));
  for (const directory of [paths.cni.shimConfDir, paths.cni.shimBinDir]) await mkdir(directory, { recursive: true });
  const kubelet = {
    port: state.kubeletPort,
    clientCAFile: pki.ca.certPath,
    cgroupDriver: state.cgroupDriver ?? 'cgroupfs',
    runtimeSocket: runtimeSocket(paths, state),
    clusterDNS: state.dns?.server,
    more: kubeletConfiguration,
  };
  await writeFileAtomic(paths.kubeletConfig, renderKubeletConfiguration(paths, kubelet));
  const agentRunsCni = state.network === 'agent';
  return writeContainerdConfig({
    paths: labContainerdPaths(paths),
    cniConfDir: agentRunsCni ? paths.cni.shimConfDir : paths.cni.confDir,
    cniBinDir: agentRunsCni ? paths.cni.shimBinDir : paths.cni.binDir,
    cgroupDriver: state.cgroupDriver ?? 'cgroupfs',
  });
}
