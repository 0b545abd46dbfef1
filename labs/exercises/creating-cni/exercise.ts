// ContainerCreating, because a plugin of the CNI chain refuses its configuration.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../../client/types.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, readyFinding } from '../pods.ts';

const CONFLIST = '10-nodelet.conflist';
const SUBNET = /"subnet": "([^"]*)"/;

export interface Facts {
  readonly pods: readonly Pod[];
  /** What the file names as the subnet; undefined where it names none. */
  readonly subnet: string | undefined;
}

/** An IPv4 network with the length of its prefix: "10.244.1.0/24". Pure. */
function isNetwork(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const octets = address.split('.');
  const numbers = octets.every((octet) => /^\d{1,3}$/.test(octet) && Number(octet) < 256);
  return octets.length === 4 && numbers && length !== undefined && /^\d{1,2}$/.test(length) && more.length === 0;
}

/** Pure. */
export function evaluate({ pods, subnet }: Facts): readonly Finding[] {
  const ip = findPod(pods, 'web')?.status?.podIP;
  return [
    finding(
      'subnet in the CNI configuration',
      subnet ?? 'none',
      subnet !== undefined && isNetwork(subnet),
      'a network with the length of its prefix, from which host-local can choose',
    ),
    finding('address of the pod', ip ?? 'none', ip !== undefined, 'the sandbox is to get its network'),
    readyFinding(pods, 'web'),
  ];
}

export const creatingCni: Exercise = {
  name: 'creating-cni',
  title: 'ContainerCreating: a CNI plugin that refuses its configuration',
  lesson:
    'A node is Ready with a CNI configuration that can be read; whether it works shows in RunPodSandbox, pod by pod.',
  minutes: 10,
  changesNode: true,
  hints: [
    'Which call fails? The event has the words of the CNI plugin.',
    'The plugin host-local could not read what "$CNI_CONF_DIR/10-nodelet.conflist" gives it as `subnet`.',
    'A subnet is an address and the length of its prefix. This node has a /24: append it.',
  ],
  setUp: async ({ cniConfDir }) => {
    const file = join(cniConfDir, CONFLIST);
    const text = await readFile(file, 'utf8');
    await writeFileAtomic(
      file,
      text.replace(SUBNET, (whole) => whole.replace(/\/\d+/, '')),
    );
  },
  check: async (machine) => {
    const text = await readFile(join(machine.cniConfDir, CONFLIST), 'utf8');
    return evaluate({ pods: await listPods(machine), subnet: SUBNET.exec(text)?.[1] });
  },
};
