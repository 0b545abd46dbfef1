// Where a text becomes a PodUID: read from an API object, from the runtime's labels, or from a name on disk. The one cast
// that there is.

import type { Pod } from '../../client/types.ts';
import type { PodUID } from '../ports/runtime.ts';

export function podUID(text: string): PodUID {
  return text as PodUID;
}

export function uidOf(pod: Pod): PodUID {
  return podUID(pod.metadata.uid);
}
