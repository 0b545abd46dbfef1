// Original file: cri.proto


export interface StreamPodSandboxMetricsRequest {
}

export interface StreamPodSandboxMetricsRequest__Output {
}
