// Which state of which API object something shows, as one text. Pure.

import type { Identified } from '../../client/store.ts';

/** "<uid>/<resourceVersion>", or "absent" where there is no object. Equal texts: equal contents. */
export function objectVersion(object: Identified | undefined): string {
  return object === undefined ? 'absent' : `${object.metadata.uid}/${object.metadata.resourceVersion}`;
}
