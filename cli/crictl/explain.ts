// What the kubelet does when it makes each CRI call: the table behind --explain. The names are functions of the kubelet
// (pkg/kubelet and its kuberuntime, pleg, images, stats and server packages). Facts only.

import type { CriMethod } from '../../agent/runtime/cri-client.ts';

export type ExplainedMethod = CriMethod | 'GetContainerEvents';

export const KUBELET_STEPS: Readonly<Record<ExplainedMethod, string>> = {
  Version: 'start, and every status check: getRuntimeVersion, checkVersionCompatibility',
  Status: 'every 5 s: updateRuntimeUp, from which the Node becomes Ready',
  RuntimeConfig: 'start: initRuntimeConfig, the cgroup driver that the runtime wants',
  UpdateRuntimeConfig: 'updatePodCIDR, when the Node is given its pod addresses',
  RunPodSandbox: 'syncPod: createPodSandbox',
  StopPodSandbox:
    'syncTerminatingPod: killPodWithSyncResult, after its containers; syncPod too, when the sandbox changed',
  RemovePodSandbox: 'garbage collection: evictSandboxes, every minute',
  PodSandboxStatus: 'syncPod and PLEG: GetPodStatus, after computePodActions or a relist has found the sandbox',
  ListPodSandbox: 'PLEG: relist, every second, to see which pods there are',
  UpdatePodSandboxResources: 'syncPod: doPodResizeAction, after the pod’s cgroup is resized',
  CreateContainer: 'syncPod: startContainer, step 2, after EnsureImageExists',
  StartContainer: 'syncPod: startContainer, step 3, before the postStart hook',
  StopContainer: 'killContainer, after the preStop hook, with what is left of the grace period',
  RemoveContainer: 'garbage collection: evictContainers; syncPod, before an init container runs again',
  ListContainers: 'PLEG: relist, every second; GetPodStatus for one pod',
  ContainerStatus: 'GetPodStatus: state, exit code and log path of each container',
  UpdateContainerResources: 'syncPod: updateContainerResources, an in-place resize; the CPU manager too',
  ReopenContainerLog: 'container log manager: rotateLatestLog, when a log has passed containerLogMaxSize',
  ExecSync: 'prober: exec probes; lifecycle: exec hooks (RunInContainer)',
  Exec: 'kubelet API /exec: GetExec, for kubectl exec',
  Attach: 'kubelet API /attach: GetAttach, for kubectl attach',
  PortForward: 'kubelet API /portForward: GetPortForward, for kubectl port-forward',
  ContainerStats: 'kubelet API /stats/summary: criStatsProvider, one container',
  ListContainerStats: 'kubelet API /stats/summary: criStatsProvider, where pod stats are not served',
  PodSandboxStats: 'kubelet API /stats/summary: criStatsProvider, one pod',
  ListPodSandboxStats: 'kubelet API /stats/summary: criStatsProvider, with PodAndContainerStatsFromCRI',
  ListMetricDescriptors: 'kubelet API /metrics/cadvisor: criMetricsCollector, at start',
  ListPodSandboxMetrics: 'kubelet API /metrics/cadvisor: criMetricsCollector, at every scrape',
  CheckpointContainer: 'kubelet API /checkpoint: CheckpointContainer',
  GetContainerEvents: 'evented PLEG: watchEventsChannel, in place of most relists',
  ListImages: 'image garbage collection: detectImages, every 5 minutes; the Node’s status.images',
  ImageStatus: 'syncPod: startContainer, step 1: EnsureImageExists, is the image there already?',
  PullImage: 'syncPod: startContainer, step 1: EnsureImageExists, by its pull policy',
  RemoveImage: 'image garbage collection: freeSpace, above imageGCHighThresholdPercent',
  ImageFsInfo: 'eviction manager and image garbage collection: how full the image filesystem is',
};
