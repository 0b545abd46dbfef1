// Whether a pod needs a new sandbox, and which attempt that would be: the kubelet's PodSandboxChanged. Pure.

import type { Pod } from '../../client/types.ts';
import type { PodSnapshot, SandboxSnapshot } from '../ports/runtime.ts';

export type SandboxVerdict =
  | { readonly kind: 'keep'; readonly sandbox: SandboxSnapshot }
  | {
      readonly kind: 'create';
      readonly attempt: number;
      readonly why: 'none' | 'severalReady' | 'notReady' | 'networkNamespace' | 'noAddress';
    };

export function podSandboxChanged(pod: Pod, snapshot: PodSnapshot): SandboxVerdict {
  const newest = snapshot.sandboxes[0];
  if (newest === undefined) return { kind: 'create', attempt: 0, why: 'none' };
  const attempt = Math.max(...snapshot.sandboxes.map((sandbox) => sandbox.attempt)) + 1;
  const ready = snapshot.sandboxes.filter((sandbox) => sandbox.state === 'ready');
  if (ready.length > 1) return { kind: 'create', attempt, why: 'severalReady' };
  if (newest.state !== 'ready') return { kind: 'create', attempt, why: 'notReady' };
  const hostNetwork = pod.spec.hostNetwork === true;
  if (newest.hostNetwork !== hostNetwork) return { kind: 'create', attempt, why: 'networkNamespace' };
  if (!hostNetwork && newest.ips.length === 0) return { kind: 'create', attempt, why: 'noAddress' };
  return { kind: 'keep', sandbox: newest };
}
