import { expect, it } from 'vitest';
import { planNetworkRemoval } from '../../../../../cli/lab/firewall.ts';
import {
  bridgeCommands,
  linkCommands,
  machineRules,
  nodeCommands,
  nodeRules,
} from '../../../../../cli/lab/node/network-text.ts';
import { firstNodes, planNode, planRange } from '../../../../../cli/lab/node/plan.ts';
import { labPaths } from '../../../../../cli/lab/paths.ts';

const RANGE = '10.192.0.0/18';
const lab = labPaths('/tmp/text-of-nodes');
const [one, two] = firstNodes(2).map((record) => planNode(lab, RANGE, record));
if (one === undefined || two === undefined) throw new Error('two nodes');

it('the machine has an address on the bridge, and a way to each node’s pods', () => {
  expect(bridgeCommands(lab.bridge, planRange(RANGE))).toBe(
    `link add ${lab.bridge} address 0a:58:0a:c0:20:01 type bridge\naddr add 10.192.32.1/24 dev ${lab.bridge}\nlink set ${lab.bridge} up\n`,
  );
  expect(linkCommands(lab.bridge, two).split('\n')).toEqual([
    `link add nl-${lab.hash}n2 type veth peer name eth0 address 0a:58:0a:c0:20:03 netns ${two.netns}`,
    `link set nl-${lab.hash}n2 master ${lab.bridge} up`,
    'route replace 10.192.1.0/24 via 10.192.32.3',
    '',
  ]);
});

it('a node knows the others’ pods, and leaves the rest to the machine', () => {
  expect(nodeCommands(one, '10.192.32.1', [one, two]).split('\n')).toEqual([
    'link set lo up',
    'addr add 10.192.32.2/24 dev eth0',
    'link set eth0 up',
    'route add default via 10.192.32.1',
    'route replace 10.192.1.0/24 via 10.192.32.3',
    '',
  ]);
});

it('pods keep their addresses in the lab, and take the node’s and the machine’s outside', () => {
  expect(nodeRules(lab.networkName, RANGE, two)).toContain('-s 10.192.1.0/24 ! -d 10.192.0.0/18 ');
  const rules = machineRules(lab.bridge, lab.networkName, RANGE, false);
  expect(rules).toContain('-s 10.192.0.0/18 ! -d 10.192.0.0/18 ');
  expect(rules).not.toContain('FORWARD');
});

it('nodelet down finds each of the machine’s rules', () => {
  const rules = machineRules(lab.bridge, lab.networkName, RANGE, true);
  // As iptables-save shows them.
  const saved = rules.replaceAll('-I FORWARD', '-A FORWARD');
  const removal = planNetworkRemoval(saved, lab.networkName) ?? '';
  const added = saved.split('\n').filter((line) => line.startsWith('-A'));
  expect(added).toHaveLength(3);
  for (const line of added) expect(removal).toContain(line.replace(/^-A/, '-D'));
});
