// metrics.k8s.io as rows that are not stored: what the collector knows, for those who may read it.

import { notFound } from '../errors.ts';
import type { KubeObject } from '../kinds/resource.ts';
import type { Registry } from '../registry/registry.ts';
import { MetricsCollector, type MetricsCollectorOptions } from './collector.ts';

const GROUP = 'metrics.k8s.io';

/** The collector reads nothing until the first request; it is to be stopped. undefined where the rows are not served. */
export function serveMetrics(
  registry: Registry,
  options: Omit<MetricsCollectorOptions, 'lookup' | 'clock'>,
): MetricsCollector | undefined {
  if (!registry.hasRow(GROUP, 'nodes') || !registry.hasRow(GROUP, 'pods')) return undefined;
  const collector = new MetricsCollector({ ...options, lookup: registry.lookup, clock: registry.clock });
  const ready = (): Promise<void> => collector.requested();
  // metrics-server names the resources so in its errors.
  const missing = (plural: string, name: string) => notFound({ group: GROUP, plural }, name);
  const named = (objects: readonly KubeObject[], name: string): KubeObject | undefined =>
    objects.find(({ metadata }) => metadata.name === name);
  registry.compute(registry.rowOf(GROUP, 'nodes'), {
    ready,
    list: () => collector.nodes(),
    get: (_namespace, name) => {
      const found = named(collector.nodes(), name);
      if (found === undefined) throw missing('nodemetrics', name);
      return found;
    },
  });
  registry.compute(registry.rowOf(GROUP, 'pods'), {
    ready,
    list: (namespace) => collector.pods(namespace),
    get: (namespace, name) => {
      const found = named(collector.pods(namespace), name);
      if (found === undefined) throw missing('podmetrics', `${namespace}/${name}`);
      return found;
    },
  });
  return collector;
}
