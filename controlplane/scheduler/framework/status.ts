// What a plugin answers when it does not accept a pod on a node. Acceptance is `undefined`, a failure of the plugin itself is
// thrown. Types and two constructors.

/** Unschedulable: the removal of pods from the node may help. UnschedulableAndUnresolvable: it cannot, so preemption leaves the node out. */
export type RejectionCode = 'Unschedulable' | 'UnschedulableAndUnresolvable';

export interface Rejection {
  readonly code: RejectionCode;
  /** In the words of the FailedScheduling event; each is counted by itself over the nodes. */
  readonly reasons: readonly string[];
  /** The plugin that rejects; filled in by the framework. */
  readonly plugin?: string;
}

export function unschedulable(...reasons: string[]): Rejection {
  return { code: 'Unschedulable', reasons };
}

export function unresolvable(...reasons: string[]): Rejection {
  return { code: 'UnschedulableAndUnresolvable', reasons };
}
