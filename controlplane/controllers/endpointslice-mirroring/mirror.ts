// The slices that mirror Endpoints which someone writes by hand, for a service without a selector: one slice for each family and
// each list of ports. Pure.

import { isIP } from 'node:net';
import type { EndpointAddress } from 'kubernetes-types/core/v1';
import type { EndpointPort } from 'kubernetes-types/discovery/v1';
import type { Endpoint, EndpointSlice, Endpoints, Service } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { endpointKey, portsKey } from '../shared/endpoint-keys.ts';
import {
  HEADLESS_LABEL,
  LEADER_ANNOTATION,
  MANAGED_BY_LABEL,
  SERVICE_NAME_LABEL,
  TRIGGER_TIME,
} from '../shared/service-pods.ts';

export const MANAGED_BY = 'endpointslicemirroring-controller.k8s.io';
const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
/** kube-controller-manager's --mirroring-max-endpoints-per-subset. */
export const MAX_PER_SUBSET = 1000;

export function mayMirror({ metadata }: Endpoints, service: Service | undefined): boolean {
  if (metadata.labels?.[SKIP_MIRROR] === 'true' || metadata.annotations?.[LEADER_ANNOTATION] !== undefined)
    return false;
  return service !== undefined && Object.keys(service.spec?.selector ?? {}).length === 0;
}

interface MirrorGroup {
  readonly addressType: 'IPv4' | 'IPv6';
  readonly ports: readonly EndpointPort[];
  readonly endpoints: Map<string, Endpoint>;
}

type Body = Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'> & {
  readonly metadata: Pick<EndpointSlice['metadata'], 'labels' | 'annotations' | 'ownerReferences'>;
};

export interface MirrorPlan {
  readonly create: readonly Body[];
  readonly update: readonly { readonly stored: EndpointSlice; readonly body: Body }[];
  readonly remove: readonly EndpointSlice[];
  readonly invalid: number;
  /** Left out because a subset has too many. */
  readonly skipped: number;
}

/** `existing`: the mirroring controller's slices of these Endpoints. */
export function planMirror(endpoints: Endpoints, existing: readonly EndpointSlice[], max = MAX_PER_SUBSET): MirrorPlan {
  const { groups, invalid, skipped } = desiredGroups(endpoints, max);
  const create: Body[] = [];
  const update: { stored: EndpointSlice; body: Body }[] = [];
  const spare: EndpointSlice[] = [];
  const missing: Body[] = [];
  const keyOf = ({
    addressType,
    ports = [],
  }: Pick<EndpointSlice, 'addressType'> & { ports?: readonly EndpointPort[] }) => `${addressType} ${portsKey(ports)}`;
  const wanted = new Map(groups.map((group) => [keyOf(group), group]));
  for (const stored of existing) {
    const key = keyOf(stored);
    const group = wanted.get(key);
    wanted.delete(key);
    if (group === undefined) {
      spare.push(stored);
      continue;
    }
    const body = bodyOf(endpoints, group, max);
    if (!isSame(stored, body)) update.push({ stored, body });
  }
  for (const group of wanted.values()) missing.push(bodyOf(endpoints, group, max));
  // A slice that would be deleted takes what a new one would have got; its family cannot change.
  for (const body of missing) {
    const place = spare.findIndex(({ addressType }) => addressType === body.addressType);
    const [stored] = place < 0 ? [] : spare.splice(place, 1);
    if (stored === undefined) create.push(body);
    else update.push({ stored, body });
  }
  return { create, update, remove: spare, invalid, skipped };
}

function desiredGroups(
  { subsets = [] }: Endpoints,
  max: number,
): { readonly groups: readonly MirrorGroup[]; readonly invalid: number; readonly skipped: number } {
  const groups = new Map<string, MirrorGroup>();
  let [invalid, skipped] = [0, 0];
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    const slicePorts = ports.map(({ name = '', port, protocol = 'TCP', appProtocol }): EndpointPort => {
      return { name, port, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) };
    });
    let added = 0;
    const all = [
      ...addresses.map((address) => ({ address, ready: true })),
      ...notReadyAddresses.map((address) => ({ address, ready: false })),
    ];
    for (const { address, ready } of all) {
      if (added >= max) {
        skipped++;
        continue;
      }
      const family = isIP(address.ip);
      if (family === 0) {
        invalid++;
        continue;
      }
      added++;
      const addressType = family === 6 ? 'IPv6' : 'IPv4';
      const key = `${addressType} ${portsKey(slicePorts)}`;
      const group: MirrorGroup = groups.get(key) ?? { addressType, ports: slicePorts, endpoints: new Map() };
      const endpoint = endpointOf(address, ready);
      group.endpoints.set(endpointKey(endpoint), endpoint);
      groups.set(key, group);
    }
  }
  return { groups: [...groups.values()], invalid, skipped };
}

function endpointOf({ ip, hostname, nodeName, targetRef }: EndpointAddress, ready: boolean): Endpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(hostname === undefined || hostname === '' ? {} : { hostname }),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(targetRef === undefined ? {} : { targetRef }),
  };
}

function bodyOf({ metadata }: Endpoints, group: MirrorGroup, max: number): Body {
  const { [TRIGGER_TIME]: _, [LAST_APPLIED]: __, ...annotations } = metadata.annotations ?? {};
  const { [HEADLESS_LABEL]: ___, ...labels } = metadata.labels ?? {};
  const { name, uid } = metadata;
  return {
    metadata: {
      labels: { ...labels, [SERVICE_NAME_LABEL]: name, [MANAGED_BY_LABEL]: MANAGED_BY },
      annotations,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Endpoints', name, uid, controller: true, blockOwnerDeletion: true }],
    },
    addressType: group.addressType,
    ports: [...group.ports],
    endpoints: [...group.endpoints.values()].slice(0, max),
  };
}

function isSame(stored: EndpointSlice, body: Body): boolean {
  const sorted = (endpoints: readonly Endpoint[] = []): readonly Endpoint[] =>
    endpoints.toSorted((a, b) => (endpointKey(a) < endpointKey(b) ? -1 : 1));
  return (
    sameJson(stored.metadata.labels, body.metadata.labels) &&
    sameJson(stored.metadata.annotations ?? {}, body.metadata.annotations) &&
    sameJson(sorted(stored.endpoints), sorted(body.endpoints))
  );
}
