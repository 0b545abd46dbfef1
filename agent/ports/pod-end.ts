// How the node itself ends a pod: evicted, preempted, shut down. Shared by the parts that decide so and the worker that
// carries it out. Types only.

/** The pod becomes Failed with this reason and message once none of its containers runs. */
export interface PodEnd {
  readonly reason: string;
  readonly message: string;
  /** Seconds between TERM and KILL, instead of the pod's own grace period. */
  readonly graceSeconds?: number;
  /** The pod is disrupted through no fault of its own: it gets the condition DisruptionTarget with this. */
  readonly disruption?: { readonly reason: string; readonly message: string };
  /** Not ready from the moment that its end is decided, instead of when its containers are dead. */
  readonly unreadyAtOnce?: boolean;
}
