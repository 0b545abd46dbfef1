// For which zones and nodes an endpoint is meant, by spec.trafficDistribution (KEPs 4444 and 3015). Pure.

import type { Endpoint, EndpointHints } from '../../../client/types.ts';

const CLOSE: ReadonlySet<string | undefined> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);

/** The older way, by an annotation, takes precedence over the field; topology.ts makes its hints. */
export function topologyModeIsAuto(annotations: Readonly<Record<string, string>> = {}): boolean {
  const mode =
    annotations['service.kubernetes.io/topology-aware-hints'] ?? annotations['service.kubernetes.io/topology-mode'];
  return mode === 'Auto' || mode === 'auto';
}

/** Undefined: for all of them. Only endpoints that are ready have hints. */
export function hintsOf(
  { conditions, zone, nodeName }: Endpoint,
  trafficDistribution: string | undefined,
  annotations: Readonly<Record<string, string>> = {},
): EndpointHints | undefined {
  if (!CLOSE.has(trafficDistribution) || topologyModeIsAuto(annotations) || conditions?.ready !== true)
    return undefined;
  const forNode = trafficDistribution === 'PreferSameNode' ? nodeName : undefined;
  if (zone === undefined && forNode === undefined) return undefined;
  return {
    ...(zone === undefined ? {} : { forZones: [{ name: zone }] }),
    ...(forNode === undefined ? {} : { forNodes: [{ name: forNode }] }),
  };
}
