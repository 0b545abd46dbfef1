// Waits for what the admission of pods needs.

import type { ApiClient } from '../../client/api.ts';

/** For giving up only: an emulated machine is twenty times slower than a real one. */
export const LIMIT_MS = 300_000;

/** The admission of pods needs the namespace's default ServiceAccount, which a controller makes. */
export async function serviceAccountIn(client: ApiClient, namespace: string): Promise<void> {
  const stop = AbortSignal.timeout(LIMIT_MS);
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  for await (const event of client.watch(path, { fieldSelector: 'metadata.name=default' }, stop)) {
    if (event.type === 'ADDED') return;
  }
  throw new Error(`namespace ${namespace} got no default ServiceAccount`);
}
