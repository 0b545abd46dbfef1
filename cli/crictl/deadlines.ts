// How long each CRI call may take, from --timeout: the rules of the kubelet's CRI client, which crictl shares. Pure.

import type { CriMethod } from '../../agent/runtime/cri-client.ts';

/** Calls that wait as long as the connection lives: they pull, or measure disks. */
const UNLIMITED: ReadonlySet<CriMethod> = new Set([
  'PullImage',
  'ImageFsInfo',
  'ListContainerStats',
] satisfies CriMethod[]);

/** ms, or undefined for no limit. `graceSeconds`: what StopContainer or ExecSync was given as its own limit. */
export function deadlineOf(method: CriMethod, timeoutMs: number, graceSeconds = 0): number | undefined {
  if (UNLIMITED.has(method)) return undefined;
  // Making a sandbox takes the network with it.
  if (method === 'RunPodSandbox') return timeoutMs * 2;
  if (method === 'StopContainer') return timeoutMs + graceSeconds * 1000;
  if (method === 'CheckpointContainer') return undefined;
  if (method === 'ExecSync') return graceSeconds > 0 ? timeoutMs + graceSeconds * 1000 : undefined;
  return timeoutMs;
}
