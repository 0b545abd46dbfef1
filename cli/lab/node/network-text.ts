// The network of a lab with several nodes, as the text that ip and iptables-restore read. Pure.
//
// The machine has a bridge with a link to each node. A node knows the way to the other nodes' pods by their addresses on the bridge, and
// to everything else by the machine. What leaves the lab's range gets the node's address, and then the machine's.

import type { NodePlan, RangePlan } from './plan.ts';
import { macOf } from './plan.ts';

/** For `ip -batch`: the machine's end. */
export function bridgeCommands(bridge: string, { gateway }: RangePlan): string {
  return lines(
    `link add ${bridge} address ${macOf(gateway)} type bridge`,
    `addr add ${gateway}/24 dev ${bridge}`,
    `link set ${bridge} up`,
  );
}

/** For `ip -batch` on the machine: the link of a node, and the way to its pods. */
export function linkCommands(bridge: string, node: NodePlan): string {
  return lines(
    `link add ${node.link} type veth peer name eth0 address ${node.mac} netns ${node.netns}`,
    `link set ${node.link} master ${bridge} up`,
    `route replace ${node.podCIDR} via ${node.address}`,
  );
}

/** For `ip -batch` in the node's network namespace. */
export function nodeCommands(node: NodePlan, gateway: string, others: readonly NodePlan[]): string {
  return lines(
    'link set lo up',
    `addr add ${node.address}/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${gateway}`,
    ...others.filter(({ name }) => name !== node.name).map(routeCommand),
  );
}

/** For `ip -batch` in another node's network namespace. */
export function routeCommand({ podCIDR, address }: NodePlan): string {
  return `route replace ${podCIDR} via ${address}`;
}

/** For `iptables-restore --noflush` on the machine. The comment is what `nodelet down` finds the rules by. */
export function machineRules(bridge: string, networkName: string, range: string, forwardDrops: boolean): string {
  const comment = `-m comment --comment "name: ${networkName}"`;
  return lines(
    '*nat',
    `-A POSTROUTING -s ${range} ! -d ${range} ${comment} -j MASQUERADE`,
    'COMMIT',
    ...(forwardDrops
      ? [
          '*filter',
          `-I FORWARD -i ${bridge} ${comment} -j ACCEPT`,
          `-I FORWARD -o ${bridge} ${comment} -j ACCEPT`,
          'COMMIT',
        ]
      : []),
  );
}

/** For `iptables-restore --noflush` in a node's network namespace. */
export function nodeRules(networkName: string, range: string, { podCIDR }: NodePlan): string {
  return lines(
    '*nat',
    `-A POSTROUTING -s ${podCIDR} ! -d ${range} -m comment --comment "name: ${networkName}" -j MASQUERADE`,
    'COMMIT',
  );
}

function lines(...all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}
