import { expect, it } from 'vitest';
import { overlaps, parseSubnet } from '../../../../../cli/lab/allocate.ts';
import {
  chooseRange,
  firstNodes,
  MAX_NODES,
  macOf,
  nextNode,
  nodePaths,
  planNode,
  planRange,
} from '../../../../../cli/lab/node/plan.ts';
import { labPaths } from '../../../../../cli/lab/paths.ts';

const RANGE = '10.192.64.0/18';
const lab = labPaths('/tmp/plan-of-nodes');

it.each([
  [0, [], '10.192.0.0/18'],
  [1, [], '10.192.64.0/18'],
  [127, [], '10.223.192.0/18'],
  [128, [], '10.192.0.0/18'],
  [0, ['10.192.0.0/18'], '10.192.64.0/18'],
  [0, ['10.192.0.5'], '10.192.64.0/18'],
  [127, ['10.223.200.0/24', 'default'], '10.192.0.0/18'],
  [3, ['10.0.0.0/8'], undefined],
])('the first free range from %i on, beside %j, is %s', (start, taken, expected) => {
  expect(chooseRange(start, taken)).toBe(expected);
});

it('the pods of all nodes are in one range, the nodes in another, and the machine is the first of these', () => {
  expect(planRange(RANGE)).toEqual({ pods: '10.192.64.0/19', nodes: '10.192.96.0/24', gateway: '10.192.96.1' });
});

it.each([
  [1, '10.192.96.2', '10.192.64.0/24', '10.192.64.1'],
  [2, '10.192.96.3', '10.192.65.0/24', '10.192.65.1'],
  [MAX_NODES, '10.192.96.33', '10.192.95.0/24', '10.192.95.1'],
])('the node %i has the address %s and the pods %s', (number, address, podCIDR, podGateway) => {
  expect(planNode(lab, RANGE, { name: 'x', number })).toMatchObject({
    address,
    podCIDR,
    podGateway,
    mac: macOf(address),
  });
});

it('no two nodes share anything, and what is the kernel’s or a socket’s is short enough', () => {
  const plans = firstNodes(MAX_NODES).map((record) => planNode(lab, RANGE, record));
  for (const key of ['name', 'address', 'podCIDR', 'link', 'mac', 'netns'] as const) {
    expect(new Set(plans.map((plan) => plan[key])).size).toBe(MAX_NODES);
  }
  expect(new Set(plans.map(({ paths }) => paths.cgroupRoot)).size).toBe(MAX_NODES);
  for (const { link } of plans) expect(link.length).toBeLessThanOrEqual(15);
  const longest = nodePaths(lab, 'n'.repeat(40));
  expect(longest.containerd.ttrpcSocket.length).toBeLessThanOrEqual(107);
  const all = parseSubnet(planRange(RANGE).nodes);
  for (const plan of plans) {
    const pods = parseSubnet(plan.podCIDR);
    expect(all !== undefined && pods !== undefined && overlaps(all, pods)).toBe(false);
  }
});

it('everything of a node is below the lab’s directories', () => {
  const paths = nodePaths(lab, 'node-7');
  expect(paths.root).toBe('/tmp/plan-of-nodes/nodes/node-7');
  expect(paths.podLogsDir).toBe('/tmp/plan-of-nodes/nodes/node-7/log/pods');
  expect(paths.traceSocket).toBe(`/run/nodelet/${lab.hash}/nodes/node-7/trace.sock`);
  expect(paths.cgroupRoot).toBe(`/nodelet-${lab.hash}/node-7`);
});

it('zones go round', () => {
  expect(firstNodes(4, ['a', 'b', 'c'])).toEqual([
    { name: 'node-1', number: 1, zone: 'a' },
    { name: 'node-2', number: 2, zone: 'b' },
    { name: 'node-3', number: 3, zone: 'c' },
    { name: 'node-4', number: 4, zone: 'a' },
  ]);
  expect(nextNode(firstNodes(4, ['a', 'b', 'c']))).toEqual({ name: 'node-5', number: 5, zone: 'b' });
  expect(nextNode(firstNodes(1), { name: 'edge', zone: 'far' })).toEqual({ name: 'edge', number: 2, zone: 'far' });
});

it.each([0, 33, 1.5])('a lab has no %d nodes', (count) => {
  expect(() => firstNodes(count)).toThrow(`a lab has 1 to 32 nodes, not ${count}`);
});

it.each([
  [{ name: 'node-1' }, 'the lab has a node node-1'],
  [{ name: 'Node' }, '"Node" is no name for a node'],
  [{ name: '../x' }, 'is no name for a node'],
  [{ name: 'a'.repeat(41) }, 'is no name for a node'],
])('no node is added as %j', (wanted, message) => {
  expect(() => nextNode(firstNodes(2), wanted)).toThrow(message);
});

it('there are no more nodes than addresses', () => {
  expect(() => nextNode(firstNodes(32))).toThrow('the lab has had 32 nodes');
});
