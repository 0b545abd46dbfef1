// Compacts etcd's history every five minutes up to what it was five minutes before, by one of all servers: they agree through
// the key that kube-apiserver's compactor uses, so that both may share one etcd.

import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { EtcdClient } from './client.ts';

/** kube-apiserver's --etcd-compaction-interval. ms. */
export const COMPACTION_MS = 5 * 60_000;
const KEY = Buffer.from('compact_rev_key');

export function startCompaction(
  client: EtcdClient,
  clock: Clock,
  log: (line: string) => void,
  signal: AbortSignal,
): void {
  let version = 0;
  let revision = 0;
  const round = async (): Promise<void> => {
    try {
      ({ version, revision } = await compactOnce(client, version, revision));
    } catch (error) {
      if (!signal.aborted) log(`etcd's history was not compacted: ${errorMessage(error)}`);
    }
    schedule();
  };
  const schedule = (): void => {
    if (signal.aborted) return;
    const timer = clock.after(COMPACTION_MS, () => void round());
    signal.addEventListener('abort', () => timer.cancel(), { once: true });
  };
  schedule();
}

/** The server whose turn it is writes the key; the others learn its version. Returns what the next round begins with. */
async function compactOnce(client: EtcdClient, version: number, revision: number) {
  const { succeeded, header, responses } = await client.txn({
    compare: [{ result: 'EQUAL', target: 'VERSION', key: KEY, version }],
    success: [{ request_put: { key: KEY, value: Buffer.from(String(revision)) } }],
    failure: [{ request_range: { key: KEY } }],
  });
  const present = Number(header?.revision ?? 0);
  if (!succeeded) {
    const kv = responses[0]?.response_range?.kvs[0];
    return { version: Number(kv?.version ?? 0), revision: present };
  }
  if (revision > 0) await client.compact(revision);
  return { version: version + 1, revision: present };
}
