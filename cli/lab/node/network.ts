// Makes and removes the network of a lab with several nodes: the bridge, and for each node a network namespace and a link. Whatever is
// missing when it ends here or crashes, the bridge takes the links and routes with it, and the namespace goes with its mount.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type ExecOptions, exec, execOk } from '../../../lib/exec.ts';
import { readMounts, unmountBelow } from '../../../lib/mounts.ts';
import { forwardPolicyDrops } from '../config.ts';
import type { LabPaths } from '../paths.ts';
import type { Program } from '../programs.ts';
import { bridgeCommands, linkCommands, machineRules, nodeCommands, nodeRules, routeCommand } from './network-text.ts';
import type { NodePlan, RangePlan } from './plan.ts';

/** The same program in a node's network namespace, under the same pid. Pure. */
export function inNetns(netns: string, program: Program): Program {
  return { command: 'nsenter', args: [`--net=${netns}`, '--', program.command, ...program.args] };
}

/**
 * The same program with a host name of its own, under the same pid. Containers on the host's network have the name of their runtime's
 * UTS namespace. Pure.
 */
export function withHostName(name: string, program: Program): Program {
  const script = 'hostname "$0" && exec "$@"';
  return { command: 'unshare', args: ['--uts', '--', 'sh', '-c', script, name, program.command, ...program.args] };
}

function runIn(netns: string, command: string, args: readonly string[], options: ExecOptions = {}): Promise<string> {
  const program = inNetns(netns, { command, args });
  return execOk(program.command, program.args, options);
}

/** The bridge, and the rules for what leaves it. */
export async function makeBridge(paths: LabPaths, range: string, plan: RangePlan): Promise<void> {
  await execOk('ip', ['-batch', '-'], { stdin: bridgeCommands(paths.bridge, plan) });
  const forward = await execOk('iptables', ['-w', '-S', 'FORWARD']);
  const rules = machineRules(paths.bridge, paths.networkName, range, forwardPolicyDrops(forward));
  await execOk('iptables-restore', ['--noflush', '-w'], { stdin: rules });
  // As the CNI plugin does it for a bridge that is a gateway.
  await writeFile('/proc/sys/net/ipv4/ip_forward', '1');
}

/** The namespace, the link, addresses, routes and rules of a node. Nothing of them may be there. */
export async function connectNode(
  lab: LabPaths,
  range: string,
  { gateway }: RangePlan,
  node: NodePlan,
  others: readonly NodePlan[],
): Promise<void> {
  await mkdir(dirname(node.netns), { recursive: true, mode: 0o711 });
  await writeFile(node.netns, '');
  await execOk('unshare', [`--net=${node.netns}`, 'true']);
  await execOk('ip', ['-batch', '-'], { stdin: linkCommands(lab.bridge, node) });
  await runIn(node.netns, 'ip', ['-batch', '-'], { stdin: nodeCommands(node, gateway, others) });
  await runIn(node.netns, 'iptables-restore', ['--noflush', '-w'], { stdin: nodeRules(lab.networkName, range, node) });
  await runIn(node.netns, 'sh', ['-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
}

/** From then on the node is without a network. Harmless where there is no link. */
export async function removeLink({ link }: NodePlan): Promise<void> {
  if ((await exec('ip', ['link', 'show', link])).code === 0) await execOk('ip', ['link', 'delete', link]);
}

/** Takes the link and the namespace away. Harmless where there is nothing. */
export async function disconnectNode(node: NodePlan): Promise<void> {
  await removeLink(node);
  if ((await readMounts()).some((mount) => mount.path === node.netns)) await unmountBelow([node.netns]);
}

/** Pulls the node's cable, or puts it back. */
export async function setLink({ link }: NodePlan, up: boolean): Promise<void> {
  await execOk('ip', ['link', 'set', link, up ? 'up' : 'down']);
}

/** Lets a node that runs know the way to another one's pods. */
export async function addRoute(node: NodePlan, to: NodePlan): Promise<void> {
  await runIn(node.netns, 'ip', ['-batch', '-'], { stdin: `${routeCommand(to)}\n` });
}

/** Whether bridged packets pass iptables in the node's namespace. */
export async function nodeBridgesAreFiltered(node: NodePlan): Promise<boolean> {
  const file = '/proc/sys/net/bridge/bridge-nf-call-iptables';
  return (await runIn(node.netns, 'sh', ['-c', `test ! -e ${file} || cat ${file}`])).trim() === '1';
}

/** The way from the machine to the addresses of Services, by one of the nodes. False: another lab has them. */
export async function routeServices(serviceRange: string, bridge: string, node: NodePlan): Promise<boolean> {
  const shown = await execOk('ip', ['route', 'show', 'exact', serviceRange]);
  if (shown.trim() !== '' && !shown.includes(` dev ${bridge} `)) return false;
  await execOk('ip', ['route', 'replace', serviceRange, 'via', node.address]);
  return true;
}
