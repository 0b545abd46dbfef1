// The PodProbes port without probes: it has no results. A container without probes needs none to be ready.

import type { PodProbes } from '../ports/probes.ts';

export const noProbes: PodProbes = {
  results: { liveness: () => undefined, readiness: () => undefined, startup: () => undefined },
  podObserved: () => undefined,
  podTerminating: () => undefined,
  podRemoved: () => undefined,
  subscribe: () => () => undefined,
};
