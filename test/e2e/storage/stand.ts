// What claims are tested against beside the API server: the loop-device driver in this process, and nodes that seem to live.

import { join } from 'node:path';
import type { ApiClient } from '../../../client/api.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { type RunningDriver, startDriver } from '../../../csi/driver/main.ts';

/** It is on n1 and can attach to n2; it has its socket and its state in `dir`. */
export function startLoopDriver(
  dir: string,
  options: { readonly poolBytes: number; readonly faultFile: string },
): Promise<RunningDriver> {
  return startDriver(
    {
      endpoint: `unix://${dir}/csi.sock`,
      stateDir: join(dir, 'state'),
      nodeId: 'n1',
      peerNodes: ['n2'],
      attach: true,
      mountGroup: false,
      maxVolumes: 128,
      requiredSecrets: { CreateVolume: { key: 'right' } },
      ...options,
    },
    () => undefined,
  );
}

/** The nodes' sign of life, as a kubelet's. */
export async function renewLeases(client: ApiClient, nodes: readonly string[]): Promise<void> {
  const path = resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease' });
  for (const name of nodes) {
    const spec = {
      holderIdentity: name,
      leaseDurationSeconds: 40,
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    };
    try {
      await client.patch(`${path}/${name}`, { spec }, 'merge');
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await client.create(path, { metadata: { name }, spec });
    }
  }
}
