// What a lab cannot do, before anything is made. Pure.

import { UserError } from '../../lib/errors.ts';
import { mirrorUrl } from './mirror-url.ts';
import type { LabOptions } from './options.ts';

/** Throws UserError for options that do not go together. */
export function refuseCombinations(options: LabOptions): void {
  const mirror = options.registryMirror === undefined ? undefined : new URL(mirrorUrl(options.registryMirror));
  if (options.nodes === undefined) return;
  const { runtime, cgroupDriver, network, csi, bindAddress } = options;
  const refused: readonly (readonly [boolean, string])[] = [
    [runtime === 'docker', '--runtime docker'],
    [cgroupDriver === 'systemd', '--cgroup-driver systemd'],
    [network === 'runtime', '--network runtime'],
    [csi !== undefined && csi !== false, '--csi'],
    [options.nodeName !== undefined, '--node-name'],
    [options.kubeletPort !== undefined, '--kubelet-port'],
    [options.agentServer !== undefined || options.agentProgram !== undefined, 'another agent'],
    [mirror !== undefined && isLoopback(mirror), '--registry-mirror on the loopback address'],
    [bindAddress !== undefined && bindAddress !== '0.0.0.0', '--bind-address other than 0.0.0.0'],
  ];
  const flag = refused.find(([given]) => given)?.[1];
  if (flag !== undefined) throw new UserError(`${flag} is not there in a lab with several nodes (--nodes)`);
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
