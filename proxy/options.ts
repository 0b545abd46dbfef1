// The proxy's options on the command line, with kube-proxy's names and defaults. Types only.

/** Settings that the rules depend on. */
export interface RuleOptions {
  /** Pods' addresses ("10.244.0.0/16"): traffic to a cluster address from elsewhere is masqueraded. */
  readonly clusterCidr: string | undefined;
  readonly masqueradeAll: boolean;
  /** One bit of the packet's mark. */
  readonly masqueradeBit: number;
  /** The addresses of the node that take node ports; undefined: all of them. */
  readonly nodePortIPs: readonly string[] | undefined;
  /** Whether node ports are reached by 127.0.0.1 as well. */
  readonly localhostNodePorts: boolean;
  /** Packets of no known connection are dropped; not where the kernel is liberal about them (nf_conntrack_tcp_be_liberal). */
  readonly dropInvalid: boolean;
  /** For loadBalancerSourceRanges: the node's own address. */
  readonly nodeIP: string | undefined;
}
