// The condition DisruptionTarget (KEP-3329) as the node sets it.

/** Reason of DisruptionTarget where the kubelet ended the pod. */
export const TERMINATION_BY_KUBELET = 'TerminationByKubelet';
