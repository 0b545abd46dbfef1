// Original file: cri.proto

import type { PodSandboxMetrics as _runtime_v1_PodSandboxMetrics, PodSandboxMetrics__Output as _runtime_v1_PodSandboxMetrics__Output } from '../../runtime/v1/PodSandboxMetrics.ts';

export interface ListPodSandboxMetricsResponse {
  'pod_metrics'?: (_runtime_v1_PodSandboxMetrics)[];
}

export interface ListPodSandboxMetricsResponse__Output {
  'pod_metrics': (_runtime_v1_PodSandboxMetrics__Output)[];
}
