// Which of the addresses that a network plugin gave a pod are the pod's: at most one of each family, that of the node's
// primary address first, as the kubelet reports them and hands them to containers. Pure.

import { isIP } from 'node:net';

export function sortPodIPs(ips: readonly string[], hostIPs: readonly string[]): readonly string[] {
  const [host] = hostIPs;
  const nodeFamily = host === undefined ? 4 : isIP(host);
  const primary = ips.find((ip) => isIP(ip) === nodeFamily);
  const secondary = ips.find((ip) => isIP(ip) !== nodeFamily);
  return [primary, secondary].filter((ip) => ip !== undefined);
}
