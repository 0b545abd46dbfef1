// What the EndpointSlice controller writes, with kube-controller-manager's names. Figures only.

import { Counter, type Metric, type MetricsText } from '../../../lib/metrics.ts';

export class EndpointSliceMetrics implements Metric {
  readonly #changes = new Counter('endpoint_slice_controller_changes', '[BETA] Number of EndpointSlice changes');
  readonly #syncs = new Counter('endpoint_slice_controller_syncs', '[BETA] Number of EndpointSlice syncs');
  readonly #slices: () => number;

  /** `slices`: how many are managed; read when a page is written. */
  constructor(slices: () => number) {
    this.#slices = slices;
  }

  changed(operation: 'create' | 'update' | 'delete'): void {
    this.#changes.inc({ operation });
  }

  /** `stale`: the cache does not show yet what was written. */
  synced(result: 'success' | 'stale' | 'error'): void {
    this.#syncs.inc({ result });
  }

  show(page: MetricsText): void {
    page.family('endpoint_slice_controller_num_endpoint_slices', 'gauge', '[BETA] Number of EndpointSlices');
    page.sample(this.#slices());
    for (const metric of [this.#changes, this.#syncs]) metric.show(page);
  }
}
