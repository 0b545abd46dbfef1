// A Service without traffic: its selector matches no pod.

import type { Exercise } from '../model.ts';
import { collectService, evaluateService } from '../services.ts';

export const serviceSelector: Exercise = {
  name: 'service-selector',
  title: 'A Service without traffic: the selector',
  lesson: 'A Service knows its pods by labels alone: a selector that matches nothing is no error, only silence.',
  minutes: 5,
  hints: [
    'The program answers inside the pod. How does a Service know which pods are behind it?',
    'Compare the column SELECTOR of the Service with the labels of the pod.',
    'Give the pod the label `app: shop` in world.yaml, and apply it.',
  ],
  check: async (machine) => evaluateService('shop', await collectService(machine, 'shop')),
};
