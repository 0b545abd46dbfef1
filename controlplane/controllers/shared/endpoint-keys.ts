// What makes lists of ports, and endpoints, the same ones. Pure.

import type { EndpointPort } from 'kubernetes-types/discovery/v1';
import type { Endpoint } from '../../../client/types.ts';

/** The same for ports in any order. */
export function portsKey(ports: readonly EndpointPort[]): string {
  return JSON.stringify(
    ports
      .map(({ name = '', port, protocol = 'TCP', appProtocol }) =>
        JSON.stringify([name, port ?? null, protocol, appProtocol ?? null]),
      )
      .sort(),
  );
}

/** What makes an endpoint the same one, whatever its state is. */
export function endpointKey({ addresses, hostname = '', targetRef }: Endpoint): string {
  return JSON.stringify([addresses.toSorted(), hostname, targetRef?.namespace ?? '', targetRef?.name ?? '']);
}
