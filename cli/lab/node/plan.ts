// One of several nodes on a machine, as names and addresses: everything follows from the lab's paths, the lab's range of addresses and
// the number of the node. Pure.
//
// A lab's range is a /18: its lower half are the pods' addresses, a /24 for each node; of the upper half, the first /24 are the
// nodes themselves, with the machine as their gateway.

import { join } from 'node:path';
import { UserError } from '../../../lib/errors.ts';
import { overlaps, parseSubnet } from '../allocate.ts';
import { type LabPaths, layout } from '../paths.ts';

/** The pods' half of the range has as many /24. */
export const MAX_NODES = 32;
/** Where labs with several nodes take their ranges from: 10.192.0.0 to 10.223.255.255. */
const RANGES = { base: 0x0ac00000, count: 128, prefix: 18 };
/** A socket's path holds 107 bytes. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** What is written down of a node, and kept. */
export interface NodeRecord {
  readonly name: string;
  /** From 1, and never used again in the same lab. */
  readonly number: number;
  /** topology.kubernetes.io/zone. */
  readonly zone?: string;
}

/** What is written down of a lab with several nodes. */
export interface NodesState {
  /** The lab's /18. */
  readonly range: string;
  /** Addresses of Services. */
  readonly serviceRange: string;
  readonly list: readonly NodeRecord[];
}

export interface RangePlan {
  /** All pods of the lab. */
  readonly pods: string;
  /** "10.192.32.0/24": the nodes. */
  readonly nodes: string;
  /** The machine, on the bridge. */
  readonly gateway: string;
}

export interface NodePlan extends NodeRecord {
  readonly address: string;
  readonly podCIDR: string;
  /** The first of podCIDR: the node's own end of its pods' bridge. */
  readonly podGateway: string;
  /** The machine's end of the node's link; the node's is eth0. */
  readonly link: string;
  /** The MAC address of eth0, which follows from its address: what others know of a node stays true when it comes back. */
  readonly mac: string;
  /** A mount of the network namespace. */
  readonly netns: string;
  /** What the node has for itself, laid out as a lab is. */
  readonly paths: LabPaths;
}

export function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
}

/** As CNI plugins make it of an IPv4 address. */
export function macOf(address: string): string {
  return ['0a', '58', ...address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(':');
}

/** The first free range from the `start`th on; undefined when all are taken. */
export function chooseRange(start: number, taken: readonly string[]): string | undefined {
  const others = taken.map(parseSubnet).filter((subnet) => subnet !== undefined && subnet.prefix > 0);
  for (let step = 0; step < RANGES.count; step++) {
    const base = RANGES.base + ((start + step) % RANGES.count) * 2 ** (32 - RANGES.prefix);
    const candidate = { base, prefix: RANGES.prefix };
    if (!others.some((other) => other !== undefined && overlaps(candidate, other))) {
      return `${formatAddress(base)}/${RANGES.prefix}`;
    }
  }
  return undefined;
}

function baseOf(range: string): number {
  const subnet = parseSubnet(range);
  if (subnet === undefined) throw new Error(`${range} is no range of addresses`);
  return subnet.base;
}

export function planRange(range: string): RangePlan {
  const base = baseOf(range);
  const nodes = base + MAX_NODES * 256;
  return {
    pods: `${formatAddress(base)}/19`,
    nodes: `${formatAddress(nodes)}/24`,
    gateway: formatAddress(nodes + 1),
  };
}

/** Where a node has its own; needs no more than its name, so that it is found after any crash. */
export function nodePaths(lab: LabPaths, name: string): LabPaths {
  return layout({
    root: join(lab.nodesDir, name),
    isDefaultRoot: false,
    hash: lab.hash,
    runDir: join(lab.nodesRunDir, name),
    cgroupRoot: `${nodesCgroup(lab)}/${name}`,
    bridge: 'cni0',
    networkName: lab.networkName,
  });
}

/** The cgroup above all nodes'. */
export function nodesCgroup(lab: Pick<LabPaths, 'hash'>): string {
  return `/nodelet-${lab.hash}`;
}

/** The file of a node's network namespace, below the node's run directory. */
export function netnsFile(paths: Pick<LabPaths, 'runDir'>): string {
  return join(paths.runDir, 'netns');
}

export function planNode(lab: LabPaths, range: string, record: NodeRecord): NodePlan {
  const base = baseOf(range);
  const paths = nodePaths(lab, record.name);
  const pods = base + (record.number - 1) * 256;
  const address = formatAddress(base + MAX_NODES * 256 + 1 + record.number);
  return {
    ...record,
    address,
    podCIDR: `${formatAddress(pods)}/24`,
    podGateway: formatAddress(pods + 1),
    link: `nl-${lab.hash}n${record.number}`,
    mac: macOf(address),
    netns: netnsFile(paths),
    paths,
  };
}

/** The first `count` nodes, with the zones in turn. Throws UserError for a number that is none of 1 to 32. */
export function firstNodes(count: number, zones: readonly string[] = []): readonly NodeRecord[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_NODES) {
    throw new UserError(`a lab has 1 to ${MAX_NODES} nodes, not ${count}`);
  }
  return Array.from({ length: count }, (_, index) => record(`node-${index + 1}`, index + 1, zoneOf(index + 1, zones)));
}

/**
 * One more. By default its name follows from its number. Throws UserError for a name that is taken or that no node can have, and when
 * there are as many as there can be.
 */
export function nextNode(
  list: readonly NodeRecord[],
  { name, zone }: { readonly name?: string; readonly zone?: string } = {},
): NodeRecord {
  const number = Math.max(0, ...list.map((node) => node.number)) + 1;
  if (number > MAX_NODES)
    throw new UserError(`the lab has had ${MAX_NODES} nodes: there are no addresses for one more`);
  const own = name ?? `node-${number}`;
  if (!NAME.test(own)) {
    throw new UserError(`"${own}" is no name for a node: up to 40 small letters, digits and dashes`);
  }
  if (list.some((node) => node.name === own)) throw new UserError(`the lab has a node ${own}`);
  const zones = [...new Set(list.flatMap((node) => node.zone ?? []))];
  return record(own, number, zone ?? zoneOf(number, zones));
}

function zoneOf(number: number, zones: readonly string[]): string | undefined {
  return zones.length === 0 ? undefined : zones[(number - 1) % zones.length];
}

function record(name: string, number: number, zone: string | undefined): NodeRecord {
  return { name, number, ...(zone === undefined ? {} : { zone }) };
}
