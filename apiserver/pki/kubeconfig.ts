// Writes kubeconfig files with embedded certificates, so that they can be copied anywhere. Never reads one: that is
// the client's business.

import { stringify } from 'yaml';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { narrowMode } from '../../lib/file-mode.ts';
import type { KubeconfigOptions } from './types.ts';

const base64 = (pem: string): string => Buffer.from(pem).toString('base64');

/** The text of a kubeconfig with one cluster, one user and one context. */
export function renderKubeconfig(options: KubeconfigOptions): string {
  const cluster = options.cluster ?? 'nodelet';
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: cluster, cluster: { server: options.server, 'certificate-authority-data': base64(options.ca) } },
      ],
      users: [
        {
          name: options.user,
          user: {
            'client-certificate-data': base64(options.client.cert),
            'client-key-data': base64(options.client.key),
          },
        },
      ],
      contexts: [
        {
          name: cluster,
          context: {
            cluster,
            user: options.user,
            ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
          },
        },
      ],
      'current-context': cluster,
    },
    { lineWidth: 0 },
  );
}

/**
 * Writes it atomically with mode 0600, since it contains a private key. A file with the same content is not written
 * again, so that a server starts on a full disk.
 */
export async function writeKubeconfig(path: string, options: KubeconfigOptions): Promise<void> {
  const text = renderKubeconfig(options);
  if ((await readFileIfExists(path)) === text) await narrowMode(path);
  else await writeFileAtomic(path, text, 0o600);
}
