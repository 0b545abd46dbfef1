// How many nodes each zone has and has lost, with kube-controller-manager's names. Figures only.

import { Counter, labelText, type Metric, type MetricsText } from '../../../lib/metrics.ts';
import type { ZoneCount } from './zones.ts';

/** As upstream's keys: region and zone with ":", NUL and ":" between. */
function zoneLabel(zone: string): { readonly zone: string } {
  return { zone: zone.replace(':', ':\0:') };
}

export class NodeLifecycleMetrics implements Metric {
  readonly #evictions = new Counter(
    'node_collector_evictions_total',
    '[STABLE] Number of Node evictions that happened since current instance of NodeController started.',
  );
  readonly #zones: () => ReadonlyMap<string, ZoneCount>;

  /** `zones` is read when a page is written. */
  constructor(zones: () => ReadonlyMap<string, ZoneCount>) {
    this.#zones = zones;
  }

  /** A node of the zone has its NoExecute taint. */
  evicted(zone: string): void {
    this.#evictions.inc(zoneLabel(zone));
  }

  show(page: MetricsText): void {
    const zones = this.#zones();
    const gauge = (name: string, help: string, value: (count: ZoneCount) => number): void => {
      page.family(`node_collector_${name}`, 'gauge', `[ALPHA] ${help}`);
      for (const [zone, count] of zones) page.sample(value(count), labelText(zoneLabel(zone)));
    };
    gauge('zone_size', 'Gauge measuring number of registered Nodes per zones.', (zone) => zone.ready + zone.notReady);
    gauge(
      'zone_health',
      'Gauge measuring percentage of healthy nodes per zone.',
      ({ ready, notReady }) => (100 * ready) / (ready + notReady),
    );
    gauge(
      'unhealthy_nodes_in_zone',
      'Gauge measuring number of not Ready Nodes per zones.',
      ({ notReady }) => notReady,
    );
    this.#evictions.show(page);
  }
}
