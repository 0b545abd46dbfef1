// Which pods a node under pressure still takes. Pure.

import type { Pod } from '../../client/types.ts';
import { podQOSClass } from '../model/pod-resources.ts';
import { isCriticalPod } from '../model/static-pods.ts';
import { EVICTED } from './messages.ts';
import type { PressureCondition } from './thresholds.ts';

const MEMORY_PRESSURE_TAINT = 'node.kubernetes.io/memory-pressure';

function toleratesMemoryPressure(pod: Pod): boolean {
  return (pod.spec.tolerations ?? []).some(({ key = '', operator = 'Equal', value = '', effect = '' }) => {
    if (effect !== '' && effect !== 'NoSchedule') return false;
    if (key === '') return operator === 'Exists';
    return key === MEMORY_PRESSURE_TAINT && (operator === 'Exists' || value === '');
  });
}

/**
 * Critical pods are always taken. Under memory pressure alone, so are all that requested something, and those that
 * tolerate its taint. Everything else waits for the pressure to end: it is refused.
 */
export function admitUnderPressure(
  pod: Pod,
  conditions: readonly PressureCondition[],
): { readonly reason: string; readonly message: string } | undefined {
  if (conditions.length === 0 || isCriticalPod(pod)) return undefined;
  if (conditions.length === 1 && conditions[0] === 'MemoryPressure') {
    if (podQOSClass(pod) !== 'BestEffort' || toleratesMemoryPressure(pod)) return undefined;
  }
  return { reason: EVICTED, message: `The node had condition: [${conditions.join(' ')}]. ` };
}
