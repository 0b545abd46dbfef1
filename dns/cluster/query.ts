// What a name in the cluster's domain asks for: a service, an endpoint, a named port, a pod. Follows the Kubernetes DNS
// specification (1.1.0) and CoreDNS. Pure.

/** Absent parts are ''. */
export interface ClusterQuery {
  /** '' for the domain itself, and for "svc" and "pod" alone. */
  readonly kind: 'svc' | 'pod' | '';
  readonly namespace: string;
  /** The service's name, or a pod's address with dashes. */
  readonly name: string;
  readonly endpoint: string;
  readonly port: string;
  readonly protocol: string;
}

const APEX: ClusterQuery = { kind: '', namespace: '', name: '', endpoint: '', port: '', protocol: '' };

/** Whether `name` is `zone` or below it; '' is the root. */
export function isBelow(name: string, zone: string): boolean {
  return zone === '' || name === zone || name.endsWith(`.${zone}`);
}

/** The longest of the zones that `name` is in. */
export function matchingZone(name: string, zones: readonly string[]): string | undefined {
  const found = zones.filter((zone) => isBelow(name, zone));
  return found.reduce<string | undefined>(
    (best, zone) => (best === undefined || zone.length > best.length ? zone : best),
    undefined,
  );
}

/** The labels of `name` that are below `zone`. */
export function labelsBelow(name: string, zone: string): readonly string[] {
  if (name === zone) return [];
  const own = zone === '' ? name : name.slice(0, -zone.length - 1);
  // A dot inside a label has a backslash before it.
  return own.split(/(?<!\\)\./);
}

const withoutUnderscore = (label: string): string => label.replace(/^_/, '');

/** Undefined: no name of this form can exist. */
export function parseClusterQuery(name: string, zone: string): ClusterQuery | undefined {
  const labels = [...labelsBelow(name, zone)];
  const kind = labels.pop();
  if (kind === undefined) return APEX;
  if (kind !== 'svc' && kind !== 'pod') return undefined;
  if (labels.length === 0) return APEX;
  const namespace = labels.pop() ?? '';
  const own = labels.pop() ?? '';
  const query = { ...APEX, kind, namespace, name: own } as const;
  const [first = '', second = ''] = labels;
  if (labels.length === 0) return query;
  if (labels.length === 1) return { ...query, endpoint: first };
  if (labels.length > 2) return undefined;
  return { ...query, port: withoutUnderscore(first), protocol: withoutUnderscore(second) };
}
