// A network by hand: a network namespace, and a CNI plugin that is run from the shell.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { type Exercise, type Finding, finding, type Ground } from '../model.ts';

/** Names on this machine: each lab has its own. An interface's may have 15 characters. Pure. */
function names({ hash }: Pick<Ground, 'hash'>) {
  const third = Number.parseInt(hash.slice(0, 2), 16);
  return { netns: `hand-${hash}`, bridge: `hand-${hash}`, subnet: `10.243.${third}.0/24`, prefix: `10.243.${third}.` };
}

export interface Facts {
  readonly prefix: string;
  readonly hasNamespace: boolean;
  /** Addresses of eth0 in the namespace. */
  readonly addresses: readonly string[];
  /** The gateway of the default route there. */
  readonly gateway: string | undefined;
  /** Ports of the bridge. */
  readonly ports: readonly string[];
  /** Addresses of the bridge. */
  readonly bridge: readonly string[];
  /** Names in host-local's directory. */
  readonly leases: readonly string[];
}

/** Pure. */
export function evaluate(facts: Facts): readonly Finding[] {
  const { prefix, hasNamespace, addresses, gateway, ports, bridge, leases } = facts;
  const own = addresses.find((address) => address.startsWith(prefix));
  return [
    finding(
      'network namespace (/run/netns)',
      hasNamespace ? 'there' : 'not there',
      hasNamespace,
      'make it with ip netns add "$NETNS"',
    ),
    finding(
      'eth0 in it',
      addresses.join(', ') || 'not there',
      own !== undefined,
      'the plugin is to give it an address of "$SUBNET"',
    ),
    finding(
      'default route in it',
      gateway === undefined ? 'none' : `via ${gateway}`,
      gateway !== undefined && bridge.includes(gateway),
      'it is to lead to the address of the bridge',
    ),
    finding('ports of the bridge', ports.join(', ') || 'none', ports.length > 0, 'the other end of the veth pair'),
    finding(
      'leases of host-local',
      leases.join(', ') || 'none',
      own !== undefined && leases.includes(own),
      'a lease of the address that eth0 has',
    ),
  ];
}

interface Link {
  readonly ifname?: string;
  readonly addr_info?: readonly { readonly family?: string; readonly local?: string }[];
}
interface Route {
  readonly dst?: string;
  readonly gateway?: string;
}

/** What `ip -json` prints; nothing where it fails: what is asked for is not there. */
async function ip<T>(...args: string[]): Promise<readonly T[]> {
  const { code, stdout } = await exec('ip', ['-json', ...args]);
  return code === 0 && stdout.trim() !== '' ? JSON.parse(stdout) : [];
}

const addressesOf = (links: readonly Link[]): readonly string[] =>
  links.flatMap(({ addr_info = [] }) =>
    addr_info.flatMap(({ family, local }) => (family === 'inet' && local !== undefined ? [local] : [])),
  );

async function leasesIn(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).filter((name) => /^\d/.test(name));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

async function collect(ground: Ground): Promise<Facts> {
  const { netns, bridge, prefix } = names(ground);
  const routes = await ip<Route>('-n', netns, 'route');
  return {
    prefix,
    hasNamespace: (await ip<{ name?: string }>('netns', 'list')).some(({ name }) => name === netns),
    addresses: addressesOf(await ip<Link>('-n', netns, 'addr', 'show', 'eth0')),
    gateway: routes.find(({ dst }) => dst === 'default')?.gateway,
    ports: (await ip<Link>('link', 'show', 'master', bridge)).map(({ ifname = '' }) => ifname),
    bridge: addressesOf(await ip<Link>('addr', 'show', bridge)),
    leases: await leasesIn(join(ground.directory, 'leases', netns)),
  };
}

export const networkByHand: Exercise = {
  name: 'network-by-hand',
  title: 'A network by hand, with ip netns and a CNI plugin',
  lesson:
    'A pod’s network is a namespace, a veth pair and a lease, made by a program that a runtime runs with a few variables set.',
  minutes: 15,
  hints: [
    'The check names what is missing. Begin with the namespace: `ip netns list`.',
    'The plugin prints its result, or an error with a code, as JSON on standard output. Read it.',
    'A second ADD of the same container fails, since eth0 is there: run it with CNI_COMMAND=DEL first.',
  ],
  variables: (ground) => {
    const { netns, bridge, subnet } = names(ground);
    return { NETNS: netns, BRIDGE: bridge, SUBNET: subnet };
  },
  remove: async (ground) => {
    const { netns, bridge } = names(ground);
    if ((await ip<{ name?: string }>('netns', 'list')).some(({ name }) => name === netns))
      await execOk('ip', ['netns', 'delete', netns]);
    if ((await ip<Link>('link', 'show', bridge)).length > 0) await execOk('ip', ['link', 'delete', bridge]);
  },
  check: async (machine) => evaluate(await collect(machine)),
};
