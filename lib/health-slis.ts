// What came of health checks, as /metrics/slis shows it: component-base's two families, and when the process began. Only checks of a whole health path are counted,
// as upstream, not those that are called by their own.

import { labelText, MetricsText } from './metrics.ts';

export type HealthPath = 'healthz' | 'livez' | 'readyz';

export class HealthSlis {
  readonly #last = new Map<string, number>();
  readonly #totals = new Map<string, number>();

  /** `name`: of the check. `type`: the path that it was called for. */
  observe(name: string, type: HealthPath, passed: boolean): void {
    this.#last.set(labelText({ name, type }), passed ? 1 : 0);
    const key = labelText({ name, status: passed ? 'success' : 'error', type });
    this.#totals.set(key, (this.#totals.get(key) ?? 0) + 1);
  }

  /** The page of /metrics/slis. */
  text(): string {
    const page = new MetricsText();
    page.family('kubernetes_healthcheck', 'gauge', '[STABLE] Whether a health check passed when it was last called.');
    for (const [labels, value] of sorted(this.#last)) page.sample(value, labels);
    page.family('kubernetes_healthchecks_total', 'counter', '[STABLE] Calls of each health check, by how they ended.');
    for (const [labels, value] of sorted(this.#totals)) page.sample(value, labels);
    page.family('process_start_time_seconds', 'gauge', '[ALPHA] When the process began, in seconds since 1970.');
    page.sample(performance.timeOrigin / 1000);
    return page.toString();
  }
}

function sorted(series: ReadonlyMap<string, number>): [string, number][] {
  return [...series].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
