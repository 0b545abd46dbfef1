// A Service without traffic: the readiness probe of its pod fails.

import type { Exercise } from '../model.ts';
import { collectService, evaluateService } from '../services.ts';

export const serviceReadiness: Exercise = {
  name: 'service-readiness',
  title: 'A Service without traffic: a pod that is not Ready',
  lesson: 'Only Ready pods get traffic, and a readiness probe decides it; a program may be well, and its probe wrong.',
  minutes: 5,
  hints: [
    'The pod is selected, and its program listens. Which pods become endpoints of a Service?',
    'The event Unhealthy has the answer that the probe got. Which path does it ask for?',
    'Write `path: /` in world.yaml, delete the pod, and apply it.',
  ],
  check: async (machine) => evaluateService('shop', await collectService(machine, 'shop')),
};
