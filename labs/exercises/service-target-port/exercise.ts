// A Service without traffic: its targetPort is one on which no program listens.

import type { Exercise } from '../model.ts';
import { collectService, evaluateService } from '../services.ts';

export const serviceTargetPort: Exercise = {
  name: 'service-target-port',
  title: 'A Service without traffic: the port',
  lesson:
    'targetPort is where traffic goes in the pod; containerPort only documents, and the socket table of the pod has the truth.',
  minutes: 5,
  hints: [
    'The pod is selected and Ready. What is left: the port at which the traffic arrives.',
    '`kubectl exec web -- netstat -tln` shows where the program listens; compare it with `targetPort`.',
    'Write `targetPort: http` (or 8080) in world.yaml, and apply it.',
  ],
  check: async (machine) => evaluateService('shop', await collectService(machine, 'shop')),
};
