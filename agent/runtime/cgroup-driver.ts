// The cgroup driver that the runtime itself uses (RuntimeConfig: containerd 2, CRI-O). The agent's pod cgroups
// have to use the same, so it overrides the configuration, as with a kubelet. Never guessed from a version.

import type { Tracer } from '../../lib/trace.ts';
import { type CriClient, isRuntimeError, SHORT_DEADLINE_MS } from './cri-client.ts';
import { createCriClient } from './grpc-cri-client.ts';

export type CgroupDriver = 'cgroupfs' | 'systemd';

/** Undefined when the runtime does not serve the question. Rejects with RuntimeError when it does not answer at all. */
export async function readCgroupDriver({ call }: CriClient): Promise<CgroupDriver | undefined> {
  try {
    const { linux } = await call('RuntimeConfig', {}, { deadlineMs: SHORT_DEADLINE_MS });
    if (linux === null) return undefined;
    return linux.cgroup_driver === 'SYSTEMD' ? 'systemd' : 'cgroupfs';
  } catch (error) {
    if (isRuntimeError(error, 'UNIMPLEMENTED')) return undefined;
    throw error;
  }
}

/** The same, once, before there is an adapter. Undefined also when the runtime is not up: it need not be. */
export async function askCgroupDriver(endpoint: string, tracer: Tracer): Promise<CgroupDriver | undefined> {
  const client = createCriClient(endpoint, endpoint, tracer);
  try {
    return await readCgroupDriver(client);
  } catch (error) {
    if (isRuntimeError(error, 'UNAVAILABLE', 'DEADLINE_EXCEEDED')) return undefined;
    throw error;
  } finally {
    client.close();
  }
}
