// The pages of /metrics of a control plane: what each part does, whether it leads, its requests, and its process.

import type { EpochMs } from '../lib/clock.ts';
import { labelText, type Metric, MetricsText } from '../lib/metrics.ts';
import { showOwnProcess } from '../lib/process-metrics.ts';

export interface PageFacts {
  /** The part's lease. */
  readonly lease: string;
  /** undefined: there is no leader election. */
  readonly leads: boolean | undefined;
  readonly startedAt: EpochMs;
}

export async function metricsPage(metrics: readonly Metric[], { lease, leads, startedAt }: PageFacts): Promise<string> {
  const page = new MetricsText();
  for (const metric of metrics) metric.show(page);
  if (leads !== undefined) {
    page.family(
      'leader_election_master_status',
      'gauge',
      "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
    );
    page.sample(leads ? 1 : 0, labelText({ name: lease }));
  }
  await showOwnProcess(page, startedAt);
  return page.toString();
}

/** Which controllers a process runs. */
export function runningControllers(names: readonly string[], manager: string): Metric {
  return {
    show: (page) => {
      page.family(
        'running_managed_controllers',
        'gauge',
        '[ALPHA] Indicates where instances of a controller are currently running',
      );
      for (const name of names) page.sample(1, labelText({ manager, name }));
    },
  };
}
