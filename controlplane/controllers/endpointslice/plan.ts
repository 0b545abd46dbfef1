// How the endpoints that a service should have are spread over slices, with as few writes as can be: an endpoint stays in the
// slice in which it is, slices that change anyway are filled first, then one that has room, then new ones. Pure.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type { Endpoint, EndpointSlice, Node, Pod, Service } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { endpointKey, portsKey } from '../shared/endpoint-keys.ts';
import { HEADLESS_LABEL, isHeadless, MANAGED_BY_LABEL, SERVICE_NAME_LABEL } from '../shared/service-pods.ts';
import { type AddressType, addressTypesOf, desiredEndpoints, type EndpointGroup } from './desired.ts';
import { hintsOf, topologyModeIsAuto } from './hints.ts';
import { type HintedSlice, type ZoneHints, type ZoneShares, zoneHints } from './topology.ts';

/** kube-controller-manager's --max-endpoints-per-slice. */
export const MAX_ENDPOINTS = 100;
export const MANAGED_BY = 'endpointslice-controller.k8s.io';

/** A slice that is not there yet. */
export type NewSlice = Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'> & {
  readonly metadata: {
    readonly generateName: string;
    readonly namespace?: string;
    readonly labels: Record<string, string>;
    readonly ownerReferences: OwnerReference[];
  };
};

export interface SlicePlan {
  readonly create: readonly NewSlice[];
  readonly update: readonly EndpointSlice[];
  readonly remove: readonly EndpointSlice[];
  readonly withoutNode: readonly { readonly pod: string; readonly node: string }[];
  /** What became of the hints by zone; undefined where the service does not want them. */
  readonly zones: readonly { readonly addressType: AddressType; readonly hints: ZoneHints | undefined }[];
}

interface Draft {
  /** Undefined: it is to be made. */
  readonly stored: EndpointSlice | undefined;
  readonly group: EndpointGroup;
  readonly endpoints: Endpoint[];
  changed: boolean;
}

/** `existing`: the controller's slices of the service that are not on their way out. `shares`: of the zones, for services with hints by zone. */
export function planSlices(
  service: Service,
  pods: readonly Pod[],
  nodeOf: (name: string) => Node | undefined,
  existing: readonly EndpointSlice[],
  max = MAX_ENDPOINTS,
  shares: ZoneShares = undefined,
): SlicePlan {
  const types = addressTypesOf(service);
  const plans = types.map((type) => {
    const own = existing.filter(({ addressType }) => addressType === type);
    return planFamily(service, desiredEndpoints(service, pods, nodeOf, type), own, { addressType: type, max, shares });
  });
  const foreign = existing.filter(({ addressType }) => !types.some((type) => type === addressType));
  return {
    create: plans.flatMap(({ create }) => create),
    update: plans.flatMap(({ update }) => update),
    remove: [...plans.flatMap(({ remove }) => remove), ...foreign],
    withoutNode: plans.flatMap(({ withoutNode }) => withoutNode),
    zones: plans.flatMap(({ zones }) => zones),
  };
}

interface Family {
  readonly addressType: AddressType;
  readonly max: number;
  readonly shares: ZoneShares;
}

function planFamily(
  service: Service,
  { groups, withoutNode }: ReturnType<typeof desiredEndpoints>,
  existing: readonly EndpointSlice[],
  { addressType, max, shares }: Family,
): SlicePlan {
  const owned = existing.filter((slice) => isOwnedBy(slice, service));
  const remove = existing.filter((slice) => !isOwnedBy(slice, service));
  const drafts: Draft[] = [];
  for (const [key, group] of groups) {
    const slices = owned.filter(({ ports = [] }) => portsKey(ports) === key);
    drafts.push(...fill(group, slices, max));
  }
  remove.push(...owned.filter(({ ports = [] }) => !groups.has(portsKey(ports))));
  const empty = drafts.filter(({ endpoints, stored }) => endpoints.length === 0 && stored !== undefined);
  const kept = drafts.filter(({ endpoints }) => endpoints.length > 0);
  remove.push(...empty.flatMap(({ stored }) => stored ?? []));
  if (kept.length === 0) {
    const hints = topologyModeIsAuto(service.metadata.annotations) ? zoneHints([], shares) : undefined;
    return { ...placeholder(service, addressType, remove), withoutNode, zones: [{ addressType, hints }] };
  }
  const labels = labelsOf(service);
  const create: NewSlice[] = [];
  const update: EndpointSlice[] = [];
  // A slice that would be deleted takes what a new one would have got.
  const spare = remove.filter((slice) => isOwnedBy(slice, service));
  const targets = kept.map((draft): Target => {
    const stored = draft.stored ?? spare.shift();
    if (stored !== undefined && draft.stored === undefined) remove.splice(remove.indexOf(stored), 1);
    const changed = draft.stored === undefined || draft.changed || !sameLabels(draft.stored, labels);
    return { draft, stored, changed };
  });
  const { slices, hints } = hinted(service, targets, shares);
  for (const [{ draft, stored, changed }, endpoints] of slices) {
    const ports = [...draft.group.ports];
    if (stored === undefined) create.push({ ...newSlice(service, addressType, labels), endpoints, ports });
    else if (changed || hintsDiffer(stored.endpoints ?? [], endpoints)) {
      update.push({ ...stored, metadata: { ...stored.metadata, labels }, endpoints, ports });
    }
  }
  return { create, update, remove, withoutNode, zones: [{ addressType, hints }] };
}

interface Target {
  readonly draft: Draft;
  /** The slice that is written or stays; undefined: a new one. */
  readonly stored: EndpointSlice | undefined;
  readonly changed: boolean;
}

/** What goes into each slice, with the hints that the service wants: by its field, or by zone. */
function hinted(
  service: Service,
  targets: readonly Target[],
  shares: ZoneShares,
): { readonly slices: readonly (readonly [Target, Endpoint[]])[]; readonly hints: ZoneHints | undefined } {
  if (!topologyModeIsAuto(service.metadata.annotations)) {
    return { slices: targets.map((target) => [target, withHints(target.draft.endpoints, service)]), hints: undefined };
  }
  // Hints of slices that do not change stay where they can: new slices and those that are written anyway take what is left.
  const rank = ({ stored, changed }: Target): number => (stored === undefined ? 0 : changed ? 1 : 2);
  const ordered = targets.toSorted((a, b) => rank(a) - rank(b));
  const facts = ordered.map(({ draft, stored, changed }): HintedSlice => {
    return { endpoints: changed ? draft.endpoints : (stored?.endpoints ?? []), changed };
  });
  const hints = zoneHints(facts, shares);
  const slices = ordered.map((target, index): readonly [Target, Endpoint[]] => {
    const endpoints = 'disabled' in hints ? undefined : hints.endpoints[index];
    return [target, endpoints === undefined ? withHints(target.draft.endpoints, service) : [...endpoints]];
  });
  return { slices, hints };
}

/** Where each endpoint of one group of ports goes. */
function fill({ ports, endpoints }: EndpointGroup, slices: readonly EndpointSlice[], max: number): readonly Draft[] {
  const left = new Map(endpoints);
  const group = { ports, endpoints };
  const drafts = slices.map((stored): Draft => {
    const before = stored.endpoints ?? [];
    const kept: Endpoint[] = [];
    let changed = false;
    for (const each of before) {
      const key = endpointKey(each);
      const wanted = left.get(key);
      if (wanted === undefined) continue;
      left.delete(key);
      kept.push(wanted);
      if (!sameEndpoint(wanted, each)) changed = true;
    }
    return { stored, group, endpoints: kept, changed: changed || kept.length !== before.length };
  });
  const rest = [...left.values()];
  const take = (draft: Draft): void => {
    const some = rest.splice(0, max - draft.endpoints.length);
    if (some.length === 0) return;
    draft.endpoints.push(...some);
    draft.changed = true;
  };
  // Those that are written anyway, the fullest first; one that would be deleted is none of them.
  const changing = drafts.filter((draft) => draft.changed && draft.endpoints.length > 0);
  for (const draft of changing.toSorted((a, b) => b.endpoints.length - a.endpoints.length)) take(draft);
  while (rest.length > 0) {
    const room = rest.length < max ? fullestWithRoom(drafts, rest.length, max) : undefined;
    const draft = room ?? { stored: undefined, group, endpoints: [], changed: true };
    if (room === undefined) drafts.push(draft);
    take(draft);
  }
  return drafts;
}

/** An unchanged slice that all of `count` fit into, and that is nearest to full then. */
function fullestWithRoom(drafts: readonly Draft[], count: number, max: number): Draft | undefined {
  const fitting = drafts.filter(
    ({ changed, endpoints }) => !changed && endpoints.length > 0 && endpoints.length + count <= max,
  );
  return fitting.toSorted((a, b) => b.endpoints.length - a.endpoints.length)[0];
}

/** A service without endpoints has one slice without any. */
function placeholder(
  service: Service,
  addressType: AddressType,
  remove: EndpointSlice[],
): Pick<SlicePlan, 'create' | 'update' | 'remove'> {
  const labels = labelsOf(service);
  const own = remove.filter((slice) => isOwnedBy(slice, service));
  const stored = own.find(({ endpoints = [], ports = [] }) => endpoints.length === 0 && ports.length === 0) ?? own[0];
  if (stored === undefined) {
    const made = { ...newSlice(service, addressType, labels), endpoints: [], ports: [] };
    return { create: [made], update: [], remove };
  }
  const others = remove.filter((slice) => slice !== stored);
  const same = (stored.endpoints ?? []).length === 0 && (stored.ports ?? []).length === 0 && sameLabels(stored, labels);
  const emptied = { ...stored, metadata: { ...stored.metadata, labels }, endpoints: [], ports: [] };
  return { create: [], update: same ? [] : [emptied], remove: others };
}

function isOwnedBy({ metadata }: EndpointSlice, service: Service): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ uid, kind, apiVersion }) => uid === service.metadata.uid && kind === 'Service' && apiVersion === 'v1',
  );
}

function labelsOf(service: Service): Record<string, string> {
  const {
    [SERVICE_NAME_LABEL]: _,
    [MANAGED_BY_LABEL]: __,
    [HEADLESS_LABEL]: ___,
    ...own
  } = service.metadata.labels ?? {};
  return {
    ...own,
    ...(isHeadless(service) ? { [HEADLESS_LABEL]: '' } : {}),
    [SERVICE_NAME_LABEL]: service.metadata.name,
    [MANAGED_BY_LABEL]: MANAGED_BY,
  };
}

function sameLabels({ metadata }: EndpointSlice, labels: Readonly<Record<string, string>>): boolean {
  return sameJson(metadata.labels, labels);
}

function newSlice(service: Service, addressType: AddressType, labels: Record<string, string>) {
  const { namespace, name, uid } = service.metadata;
  const owner: OwnerReference = {
    apiVersion: 'v1',
    kind: 'Service',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  return {
    metadata: {
      generateName: `${name}-`,
      ...(namespace === undefined ? {} : { namespace }),
      labels,
      ownerReferences: [owner],
    },
    addressType,
  };
}

/** All but the hints and the version of the pod. */
function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  const view = ({ nodeName, zone, conditions, targetRef }: Endpoint): readonly unknown[] => [
    nodeName ?? '',
    zone ?? '',
    conditions?.ready,
    conditions?.serving,
    conditions?.terminating,
    targetRef?.kind,
    targetRef?.uid,
  ];
  return sameJson(view(a), view(b));
}

function withHints(endpoints: readonly Endpoint[], { spec, metadata }: Service): Endpoint[] {
  return endpoints.map(({ hints: _, ...endpoint }) => {
    const hints = hintsOf(endpoint, spec?.trafficDistribution, metadata.annotations);
    return hints === undefined ? endpoint : { ...endpoint, hints };
  });
}

function hintsDiffer(before: readonly Endpoint[], now: readonly Endpoint[]): boolean {
  return now.some(({ hints }, index) => !sameJson(hints, before[index]?.hints));
}
