// LimitRanger: containers get the defaults of their namespace's LimitRanges, and pods and claims stay within their bounds
// (plugin/pkg/admission/limitranger).

import type { LimitRange, LimitRangeItem, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import { aggregate } from '../../../lib/aggregate.ts';
import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { type Amount, type Amounts, amountOf, amountsOf, amountText } from '../../../lib/quota/amounts.ts';
import { podResources } from '../../../lib/quota/pod-resources.ts';
import type { ObjectLookup } from '../../kinds/resource.ts';
import { as, type Container, type Loose, type Pod, podOf } from '../../kinds/shapes.ts';
import { type AdmissionAttributes, AdmissionForbidden, type AdmissionPlugin } from '../plugin.ts';

type Item = Loose<LimitRangeItem>;
type Quantities = Record<string, string | undefined>;
const ANNOTATION = 'kubernetes.io/limit-ranger';
const NONE: Amounts = new Map();

function rangesOf({ namespace }: AdmissionAttributes, lookup: ObjectLookup): Item[][] {
  return [...lookup.each('', 'limitranges', namespace)].map(
    (stored) => as<LimitRange>(stored, 'LimitRange').spec?.limits ?? [],
  );
}

/** Adds what `list` lacks; returns the names it added. */
function fill(container: Container, list: 'requests' | 'limits', defaults: Quantities): string[] {
  const own = container.resources?.[list];
  const missing = Object.keys(defaults).filter((name) => getOwn(own, name) === undefined);
  if (missing.length === 0) return [];
  const filled: Quantities = { ...own };
  for (const name of missing) setOwn(filled, name, getOwn(defaults, name));
  container.resources = { ...container.resources, [list]: filled };
  return missing.sort();
}

/** Fills a pod's containers from one LimitRange, in place, and notes in an annotation what was filled. */
function applyDefaults(pod: Pod, items: readonly Item[]): void {
  const ofContainers = items.filter(({ type }) => type === 'Container');
  const requests: Quantities = Object.assign({}, ...ofContainers.map((item) => item.defaultRequest ?? {}));
  const limits: Quantities = Object.assign({}, ...ofContainers.map((item) => item.default ?? {}));
  const notes: string[] = [];
  const containers = [
    ...(pod.spec?.containers ?? []).map((container) => ({ container, what: 'container' })),
    ...(pod.spec?.initContainers ?? []).map((container) => ({ container, what: 'init container' })),
  ];
  for (const { container, what } of containers) {
    for (const [list, defaults] of [['requests', requests] as const, ['limits', limits] as const]) {
      const names = fill(container, list, defaults);
      const word = list === 'requests' ? 'request' : 'limit';
      if (names.length > 0) notes.push(`${names.join(', ')} ${word} for ${what} ${container.name ?? ''}`);
    }
  }
  if (notes.length > 0) {
    pod.metadata.annotations = {
      ...pod.metadata.annotations,
      [ANNOTATION]: `LimitRanger plugin set: ${notes.join('; ')}`,
    };
  }
}

interface Place {
  readonly type: string;
  readonly requests: Amounts;
  readonly limits: Amounts;
}

function belowMin(name: string, bound: Amount, { type, requests, limits }: Place): string | undefined {
  const base = `minimum ${name} usage per ${type} is ${amountText(bound)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (request === undefined) return `${base}.  No request is specified`;
  if (request.nano < bound.nano) return `${base}, but request is ${amountText(request)}`;
  if (limit !== undefined && limit.nano < bound.nano) return `${base}, but limit is ${amountText(limit)}`;
  return undefined;
}

function aboveMax(name: string, bound: Amount, { type, requests, limits }: Place): string | undefined {
  const base = `maximum ${name} usage per ${type} is ${amountText(bound)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (limit === undefined) return `${base}.  No limit is specified`;
  if (limit.nano > bound.nano) return `${base}, but limit is ${amountText(limit)}`;
  if (request !== undefined && request.nano > bound.nano) return `${base}, but request is ${amountText(request)}`;
  return undefined;
}

/** Claims have requests only. */
function requestAboveMax(name: string, bound: Amount, { type, requests }: Place): string | undefined {
  const base = `maximum ${name} usage per ${type} is ${amountText(bound)}`;
  const request = requests.get(name);
  if (request === undefined) return `${base}.  No request is specified`;
  return request.nano > bound.nano ? `${base}, but request is ${amountText(request)}` : undefined;
}

function aboveRatio(name: string, bound: Amount, { type, requests, limits }: Place): string | undefined {
  const base = `${name} max limit to request ratio per ${type} is ${amountText(bound)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (request === undefined || request.nano === 0n) return `${base}, but no request is specified or request is 0`;
  if (limit === undefined || limit.nano === 0n) return `${base}, but no limit is specified or limit is 0`;
  const ratio = Number(limit.nano) / Number(request.nano);
  if (ratio <= Number(bound.nano) / 1e9) return undefined;
  return `${base}, but provided ratio is ${ratio.toFixed(6)}`;
}

type Check = (name: string, bound: Amount, place: Place) => string | undefined;

function broken(bounds: Loose<Quantities> | undefined, check: Check, place: Place): string[] {
  return Object.entries(bounds ?? {}).flatMap(([name, text]) => check(name, amountOf(text), place) ?? []);
}

function checkPlace(item: Item, place: Place): string[] {
  return [
    ...broken(item.min, belowMin, place),
    ...broken(item.max, aboveMax, place),
    ...broken(item.maxLimitRequestRatio, aboveRatio, place),
  ];
}

/** What a pod breaks of one LimitRange. Pure. */
export function podViolations(pod: Pod, items: readonly Item[]): string[] {
  const spec = pod.spec ?? {};
  return items.flatMap((item) => {
    if (item.type === 'Container') {
      return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ resources }) =>
        checkPlace(item, {
          type: 'Container',
          requests: amountsOf(resources?.requests),
          limits: amountsOf(resources?.limits),
        }),
      );
    }
    if (item.type !== 'Pod') return [];
    const [requests, limits] = [podResources(spec, 'requests'), podResources(spec, 'limits')];
    return checkPlace(item, { type: 'Pod', requests, limits });
  });
}

function claimViolations(requests: Amounts, items: readonly Item[]): string[] {
  const place = { type: 'PersistentVolumeClaim', requests, limits: NONE };
  return items
    .filter(({ type }) => type === 'PersistentVolumeClaim')
    .flatMap((item) => [...broken(item.min, belowMin, place), ...broken(item.max, requestAboveMax, place)]);
}

export const limitRanger: AdmissionPlugin = {
  name: 'LimitRanger',
  // Containers do not change after a pod's creation, but for their resources.
  handles: (operation, { group, plural, subresource }) => {
    if (group !== '') return false;
    if (plural === 'pods') {
      return (operation === 'CREATE' && subresource === '') || (operation === 'UPDATE' && subresource === 'resize');
    }
    return plural === 'persistentvolumeclaims' && subresource === '' && ['CREATE', 'UPDATE'].includes(operation);
  },
  admit: (attributes, lookup) => {
    const { object, operation } = attributes;
    if (object?.kind !== 'Pod' || operation !== 'CREATE') return;
    for (const items of rangesOf(attributes, lookup)) applyDefaults(podOf(object), items);
  },
  validate: (attributes, lookup) => {
    const { object } = attributes;
    if (object === undefined) return;
    for (const items of rangesOf(attributes, lookup)) {
      const broken =
        object.kind === 'Pod'
          ? podViolations(podOf(object), items)
          : claimViolations(
              amountsOf(as<PersistentVolumeClaim>(object, 'PersistentVolumeClaim').spec?.resources?.requests),
              items,
            );
      if (broken.length > 0) throw new AdmissionForbidden(aggregate(broken));
    }
  },
};
