// All exercises, in the order in which one would do them.

import { atomicWriter } from './atomic-writer/exercise.ts';
import { configError } from './config-error/exercise.ts';
import { crashLoop } from './crash-loop/exercise.ts';
import { creatingCni } from './creating-cni/exercise.ts';
import { creatingConfigmap } from './creating-configmap/exercise.ts';
import { imagePull } from './image-pull/exercise.ts';
import { logRotation } from './log-rotation/exercise.ts';
import type { Exercise } from './model.ts';
import { networkByHand } from './network-by-hand/exercise.ts';
import { nodeNotReady } from './node-not-ready/exercise.ts';
import { nodeSilent } from './node-silent/exercise.ts';
import { outOfMemory } from './out-of-memory/exercise.ts';
import { pendingResources } from './pending-resources/exercise.ts';
import { pendingSelector } from './pending-selector/exercise.ts';
import { pendingTaint } from './pending-taint/exercise.ts';
import { podByHand } from './pod-by-hand/exercise.ts';
import { qosCgroups } from './qos-cgroups/exercise.ts';
import { serviceReadiness } from './service-readiness/exercise.ts';
import { serviceSelector } from './service-selector/exercise.ts';
import { serviceTargetPort } from './service-target-port/exercise.ts';
import { slowStart } from './slow-start/exercise.ts';
import { staticPod } from './static-pod/exercise.ts';
import { twoRuntimes } from './two-runtimes/exercise.ts';
import { volumeByHand } from './volume-by-hand/exercise.ts';

export const EXERCISES: readonly Exercise[] = [
  // What a kubelet does, by hand or from close by.
  podByHand,
  twoRuntimes,
  networkByHand,
  volumeByHand,
  qosCgroups,
  atomicWriter,
  logRotation,
  slowStart,
  staticPod,
  // Nodes that are broken.
  nodeNotReady,
  nodeSilent,
  // Pods that are broken, in the order of a start.
  pendingResources,
  pendingSelector,
  pendingTaint,
  creatingConfigmap,
  creatingCni,
  imagePull,
  configError,
  crashLoop,
  outOfMemory,
  // Services without traffic.
  serviceSelector,
  serviceReadiness,
  serviceTargetPort,
];

export function findExercise(name: string): Exercise | undefined {
  return EXERCISES.find((exercise) => exercise.name === name);
}
