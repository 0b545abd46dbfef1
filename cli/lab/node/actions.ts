// What can be done to the nodes of a lab with several, while it runs. Types only.

/**
 * stopped: in order, as a machine that is shut down. killed: as a machine whose plug was pulled. partitioned: it runs without
 * a network. changing: an action is in progress.
 */
export type NodeCondition = 'running' | 'stopped' | 'killed' | 'partitioned' | 'changing';

export interface NodeView {
  readonly name: string;
  readonly condition: NodeCondition;
  readonly zone?: string;
  readonly address: string;
  readonly podCIDR: string;
  /** Where the node's files and logs are. */
  readonly root: string;
  /** For `nsenter --net=`. */
  readonly netns: string;
  /** Of its containerd. */
  readonly runtimeSocket: string;
  /** Of its agent's trace. */
  readonly traceSocket: string;
}

/** Each resolves when it is done, and rejects with UserError for a node that the lab has not, or that is in another condition. */
export interface NodeActions {
  list(): readonly NodeView[];
  /** Resolves when the node is Ready. */
  add(wanted?: { readonly name?: string; readonly zone?: string }): Promise<NodeView>;
  /** The agent ends, then what runs in pods (TERM, after 5 s KILL), then containerd; the node's disk stays. */
  stop(name: string): Promise<void>;
  /** Everything of the node ends at once, and sends nothing more; its disk stays. */
  kill(name: string): Promise<void>;
  /** After stop and kill. Resolves when the node is Ready. */
  start(name: string): Promise<void>;
  /** The node's link goes down. */
  partition(name: string): Promise<void>;
  heal(name: string): Promise<void>;
}
