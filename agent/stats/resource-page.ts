// /metrics/resource: what metrics-server and others take rates and sums from, with the kubelet's names, types and times. Pure.

import { labelText, MetricsText } from '../../lib/metrics.ts';
import type { NodeSample, Sample } from './sampler.ts';

interface Row {
  readonly labels: string;
  readonly sample: Sample;
  /** Seconds since the epoch; undefined for what is no container. */
  readonly started?: number;
}

const NS = 1e9;

/** `node` undefined: the figures could not be read; the page then says so, and nothing else. */
export function resourcePage(node: NodeSample | undefined): string {
  const page = new MetricsText();
  if (node !== undefined) {
    const containers = containerRows(node);
    const pods = node.pods.flatMap(({ name, namespace, sample, containers: running }): Row[] =>
      sample === undefined || running.length === 0 ? [] : [{ labels: labelText({ namespace, pod: name }), sample }],
    );
    addRows(page, 'container', containers);
    page.family(
      'container_start_time_seconds',
      'gauge',
      '[STABLE] Start time of the container since unix epoch in seconds',
    );
    for (const { labels, started } of containers) if (started !== undefined) page.sample(started, labels);
    page.family(
      'container_swap_limit_bytes',
      'gauge',
      '[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems',
    );
    for (const { labels, sample } of containers) {
      if (sample.limits.swap !== undefined) page.sample(sample.limits.swap, labels, sample.at);
    }
    addRows(page, 'node', node.root === undefined ? [] : [{ labels: '', sample: node.root }]);
    addRows(page, 'pod', pods);
  }
  const failed = node?.root === undefined ? 1 : 0;
  const help = '1 if there was an error while getting container metrics, 0 otherwise';
  page.family('resource_scrape_error', 'gauge', `[STABLE] ${help}`);
  page.sample(failed);
  return page.toString();
}

function containerRows(node: NodeSample): readonly Row[] {
  return node.pods.flatMap(({ name: pod, namespace, containers }) =>
    containers.map(({ container, sample }) => ({
      labels: labelText({ container: container.name, namespace, pod }),
      sample,
      started: container.createdAt / 1000,
    })),
  );
}

function addRows(page: MetricsText, prefix: 'container' | 'node' | 'pod', rows: readonly Row[]): void {
  page.family(
    `${prefix}_cpu_usage_seconds_total`,
    'counter',
    `[STABLE] Cumulative cpu time consumed by the ${prefix} in core-seconds`,
  );
  for (const { labels, sample } of rows) page.sample(sample.cpuUsageNs / NS, labels, sample.at);
  page.family(`${prefix}_memory_working_set_bytes`, 'gauge', `[STABLE] Current working set of the ${prefix} in bytes`);
  for (const { labels, sample } of rows) {
    if (sample.memory !== undefined) page.sample(sample.memory.workingSet, labels, sample.at);
  }
  const swapOf = prefix === 'node' ? 'swap usage of the node' : `amount of the ${prefix} swap usage`;
  page.family(
    `${prefix}_swap_usage_bytes`,
    'gauge',
    `[ALPHA] Current ${swapOf} in bytes. Reported only on non-windows systems`,
  );
  for (const { labels, sample } of rows) {
    if (sample.memory !== undefined) page.sample(sample.memory.swap, labels, sample.at);
  }
}
