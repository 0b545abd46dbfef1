// How many seats a request takes. A list, and a watch that begins with one, takes more the more it returns: as much as the
// last one of the same resource and namespace did (upstream estimates that from the number and the size of objects in the
// store). Everything else takes one: what a write costs its watchers is over when the write is.

import { flag, type ResourceRequest } from '../http/request.ts';

/** Bytes of a response for each seat, as upstream. */
const BYTES_PER_SEAT = 100_000;
const MAX_PLACES = 4096;

function placeOf({ group, resource, namespace, query }: ResourceRequest): string {
  const selects = query.has('labelSelector') || query.has('fieldSelector');
  return `${group}/${resource}/${namespace}/${query.get('limit') ?? ''}/${selects}`;
}

function returnsList({ verb, subresource, query }: ResourceRequest): boolean {
  if (subresource !== '' || (verb !== 'list' && verb !== 'watch')) return false;
  if (/metadata\.name=/.test(query.get('fieldSelector') ?? '')) return false;
  if (verb === 'list') return true;
  return flag(query, 'sendInitialEvents') || ['', '0'].includes(query.get('resourceVersion') ?? '');
}

export class Widths {
  /** Bytes. */
  readonly #returned = new Map<string, number>();

  /** A list returned so much. */
  listed(request: ResourceRequest, bytes: number): void {
    if (!returnsList(request)) return;
    if (this.#returned.size >= MAX_PLACES) this.#returned.clear();
    this.#returned.set(placeOf(request), bytes);
  }

  seatsOf(request: ResourceRequest): number {
    if (!returnsList(request)) return 1;
    return Math.max(1, Math.ceil((this.#returned.get(placeOf(request)) ?? 0) / BYTES_PER_SEAT));
  }
}
