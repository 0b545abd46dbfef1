// The status that a pod starts with: Pending, its quality-of-service class, and the condition with the reason why nothing
// schedules it. After that the status is the agent's.

import { computePodQOS } from '../../../lib/qos-class.ts';
import type { Pod, PodStatus } from '../shapes.ts';

export function initialPodStatus(pod: Pod): PodStatus {
  const spec = pod.spec ?? {};
  const status: PodStatus = { phase: 'Pending', qosClass: computePodQOS(spec) };
  if ((spec.schedulingGates ?? []).length > 0) {
    status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  }
  return status;
}
