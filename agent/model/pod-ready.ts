// Whether a pod is Ready, by its condition. Pure.

import type { Pod } from '../../client/types.ts';

export function isPodReady({ status }: Pick<Pod, 'status'>): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}
