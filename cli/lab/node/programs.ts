// What the processes of one of several nodes are started with: command lines made from the node's plan. Pure.

import { nodelet, type Program } from '../programs.ts';
import type { NodePlan } from './plan.ts';

export function nodeAgentProgram(plan: NodePlan, more: readonly string[] = []): Program {
  const { paths, zone } = plan;
  return nodelet(
    'agent',
    ...['--kubeconfig', paths.kubeconfigs.agent],
    ...['--config', paths.kubeletConfig],
    ...['--hostname-override', plan.name],
    ...['--node-ip', plan.address],
    ...(zone === undefined ? [] : ['--node-labels', `topology.kubernetes.io/zone=${zone}`]),
    ...['--root-dir', paths.kubeletDir],
    ...['--socket-dir', paths.agentSocketDir],
    ...['--network', 'agent'],
    ...['--cni-conf-dir', paths.cni.confDir],
    ...['--cni-bin-dir', paths.cni.binDir],
    ...['--cni-cache-dir', paths.cni.cacheDir],
    ...['--cni-shim-dir', paths.cni.shimDir],
    ...more,
  );
}

export interface NodeProxyChoice {
  readonly mode: 'iptables' | 'nftables';
  /** All pods of the lab. */
  readonly pods: string;
  readonly masqueradeAll: boolean;
}

/** At kube-proxy's own ports: the node's network namespace is its own. */
export function nodeProxyProgram(plan: NodePlan, choice: NodeProxyChoice, more: readonly string[] = []): Program {
  return nodelet(
    'proxy',
    ...['--kubeconfig', plan.paths.kubeconfigs.proxy],
    ...['--hostname-override', plan.name],
    ...['--proxy-mode', choice.mode],
    ...['--cluster-cidr', choice.pods],
    ...['--owner', plan.paths.networkName],
    ...(choice.masqueradeAll ? ['--masquerade-all'] : []),
    ...more,
  );
}
