// The facts that the collectors have about one object, as the rules get them: plain data, without a judgement. What is missing is
// in `gaps`, with the reason; a rule that needs it has no opinion then. Types only.

import type { PersistentVolume, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { StorageClass, VolumeAttachment } from 'kubernetes-types/storage/v1';
import type { Lease, Node, Pod, Service, Stored } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import type { ListeningSocket } from '../../lib/listening-sockets.ts';
import type { OpenCall, Span } from '../../lib/trace.ts';

export type WorkloadKind = 'deployment' | 'replicaset' | 'statefulset' | 'daemonset' | 'job';
export type Kind = 'pod' | 'node' | 'service' | 'pvc' | WorkloadKind;

/** A source that could not be read. */
export interface Gap {
  /** "the runtime", "the trace of the agent" */
  readonly what: string;
  readonly why: string;
}

/** An object that another one names. `unknown`: reading it failed for another reason than that it is not there. */
export type Lookup<T> =
  | { readonly state: 'found'; readonly value: T }
  | { readonly state: 'absent' }
  | { readonly state: 'unknown'; readonly why: string };

/** Whom a Secret for pulling images logs in as, and where. */
export interface RegistryAccount {
  /** "registry.example:5000/team", "*.example.com" */
  readonly location: string;
  /** '' for a token. */
  readonly user: string;
}

/** A ConfigMap or Secret: its keys, and never its values. */
export interface KeyedObject {
  readonly keys: readonly string[];
  /** Of a Secret for pulling images; absent of another one. */
  readonly accounts?: readonly RegistryAccount[];
  /** Why it cannot be used for pulling images. */
  readonly problem?: string;
}

/** Several events of one kind are one, with a count. */
export interface EventFact {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly first: EpochMs;
  readonly last: EpochMs;
  readonly source: string;
  /** The one that it is about, where it is about one. */
  readonly container?: string;
}

/** A condition of CRI's Status. */
export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface SandboxFact {
  readonly id: string;
  /** The pod's. */
  readonly uid: string;
  readonly ready: boolean;
  readonly created: EpochMs;
  /** Where the agent has the pod from: "api", "file", "http"; '' where it does not say. */
  readonly source: string;
}

export interface ContainerFact {
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  /** CRI's name without its prefix: "RUNNING" */
  readonly state: string;
}

/** What the runtime of this machine answered. */
export interface RuntimeFacts {
  /** "unix:///run/containerd/containerd.sock" */
  readonly endpoint: string;
  /** It did not answer, with this error; everything else is empty then. */
  readonly failure: string | undefined;
  readonly conditions: readonly RuntimeCondition[];
  /** Runtime handlers; undefined: the runtime does not list them. */
  readonly handlers: readonly string[] | undefined;
  readonly sandboxes: readonly SandboxFact[];
  readonly containers: readonly ContainerFact[];
}

/** A part of an image that the runtime is fetching, of whichever image. */
export interface Download {
  /** What it is, by its digest: "layer-sha256:…" */
  readonly part: string;
  /** Bytes that are there. */
  readonly bytes: number;
  /** Bytes of the whole; undefined where the registry has not sent it. */
  readonly total: number | undefined;
  readonly since: EpochMs;
  /** When its last bytes came. */
  readonly updated: EpochMs;
}

/** A process of a container, from /proc. */
export interface ProcessFact {
  readonly pid: number;
  readonly container: string;
  readonly command: string;
  /** State letter of /proc/PID/stat: R, S, D, Z, T … */
  readonly state: string;
  /** The kernel function in which it waits; '' where it runs or the kernel does not show it. */
  readonly waitsIn: string;
  /** The kernel's stack, innermost first; empty where it cannot be read. */
  readonly stack: readonly string[];
  /** Whether it ignores SIGTERM, or handles it. */
  readonly term: 'ignored' | 'handled' | 'default';
}

/** One kill by the kernel's out-of-memory killer. */
export interface OomKill {
  readonly pid: number;
  /** The process' name, at most 15 characters. */
  readonly process: string;
  /** The container's id, or '' where the limit is that of the whole pod or node. */
  readonly container: string;
  /** Resident memory of the process when it was killed, bytes. */
  readonly residentBytes: number | undefined;
}

/** Memory of the pod's cgroup, bytes. */
export interface MemoryFacts {
  readonly limit: number | undefined;
  readonly peak: number | undefined;
}

/** A process that uses a mount, which the kernel therefore does not unmount. */
export interface MountUser {
  readonly pid: number;
  readonly command: string;
  /** "its working directory", "its root directory", or the path of an open file. */
  readonly uses: string;
}

/** A volume of the pod that is mounted. */
export interface MountFact {
  readonly path: string;
  readonly users: readonly MountUser[];
}

/** What is read from the kernel of the pod's node. */
export interface MachineFacts {
  readonly memory: MemoryFacts | undefined;
  readonly oomKills: readonly OomKill[];
  readonly processes: readonly ProcessFact[];
  /** Read of a pod that is being deleted. */
  readonly mounts?: readonly MountFact[];
}

/** Objects that a pod names, by their names. */
export interface References {
  readonly configMaps: ReadonlyMap<string, Lookup<KeyedObject>>;
  readonly secrets: ReadonlyMap<string, Lookup<KeyedObject>>;
  readonly claims: ReadonlyMap<string, Lookup<ClaimFact>>;
  readonly serviceAccount: Lookup<object>;
  /** The handler of the pod's RuntimeClass. */
  readonly runtimeClass: Lookup<{ readonly handler: string }> | undefined;
  /** Names that are there, for those that are not: a typing error is named. */
  readonly configMapNames: readonly string[];
  readonly secretNames: readonly string[];
  /** CSI drivers that are registered with the pod's node; undefined: not known. */
  readonly drivers: readonly string[] | undefined;
  /** Of the volumes of its claims, to its node. */
  readonly attachments: readonly Stored<VolumeAttachment>[];
  /** Drivers of its claims' volumes that need a VolumeAttachment. */
  readonly attachDrivers: readonly string[];
}

export interface ClaimFact {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly volume: Stored<PersistentVolume> | undefined;
  /** Undefined: it names none, or one that is not there. */
  readonly storageClass: Stored<StorageClass> | undefined;
  /** Events of the claim itself. */
  readonly events: readonly EventFact[];
}

export interface LogFact {
  readonly container: string;
  /** Of the instance before the present one. */
  readonly previous: boolean;
  readonly lines: readonly string[];
}

interface Common {
  readonly now: EpochMs;
  readonly gaps: readonly Gap[];
  readonly events: readonly EventFact[];
}

export interface PodFacts extends Common {
  readonly kind: 'pod';
  readonly pod: Pod;
  readonly nodes: readonly Node[];
  /** Pods that have a node, for what is in use there; empty where no rule needs it. */
  readonly placed: readonly Pod[];
  /** Of the node that the pod is on. */
  readonly lease: Lease | undefined;
  readonly references: References;
  /** Of this pod, oldest first. Empty where no agent of nodelet serves its trace. */
  readonly spans: readonly Span[];
  /** What its agent is doing for it now, oldest first. */
  readonly open: readonly OpenCall[];
  readonly runtime: RuntimeFacts | undefined;
  /** While a container waits: what the runtime is fetching, for this pod or another. */
  readonly downloads: readonly Download[];
  readonly machine: MachineFacts | undefined;
  readonly logs: readonly LogFact[];
}

/** A pod that is not at the API server, and that the runtime of this machine still has. */
export interface GonePodFacts extends Common {
  readonly kind: 'gone-pod';
  readonly namespace: string;
  readonly name: string;
  /** Of this machine. */
  readonly node: string;
  readonly runtime: RuntimeFacts;
  readonly processes: readonly ProcessFact[];
  readonly open: readonly OpenCall[];
}

/** What a certificate says, and whether the cluster's CA has signed it. */
export interface CertificateFact {
  /** The file that has it, or the address that shows it. */
  readonly place: string;
  /** "O=system:nodes, CN=system:node:n1" */
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: EpochMs;
  readonly notAfter: EpochMs;
  /** By the CA of the API server, as a kubeconfig names it; undefined where none is named. */
  readonly signedByCa: boolean | undefined;
  /** Made by its owner for itself, as an agent's serving certificate is where none is configured. */
  readonly selfMade: boolean;
}

/** How far one request to the API server came: the first step that failed, or `answered`. */
export interface ServerAttempt {
  /** "https://10.0.0.1:6443" */
  readonly server: string;
  /** "GET /api/v1/nodes/n1" */
  readonly request: string;
  readonly step: 'dns' | 'tcp' | 'tls' | 'http' | 'answered';
  /** What came back, in its own words. */
  readonly answer: string;
  /** Of HTTP, where there was an answer. */
  readonly status: number | undefined;
}

/** This machine's clock against the API server's. ms. */
export interface ClockFact {
  /** Positive where this machine is ahead. */
  readonly offsetMs: number;
  /** The offset is known as well as this. */
  readonly marginMs: number;
}

/** The agent of this machine, as its files and the process table show it. */
export interface AgentFacts {
  readonly kubeconfig: string;
  /** Why the agent cannot use its kubeconfig. */
  readonly problem: string | undefined;
  /** The agent's process; undefined: none was found. */
  readonly process: { readonly pid: number; readonly state: string } | undefined;
  /** That by which the agent is known to the API server; undefined where it has a token instead. */
  readonly certificate: CertificateFact | undefined;
  /** The agent's own request for its Node, made with its kubeconfig. */
  readonly attempt: ServerAttempt | undefined;
}

/** The agent's own HTTPS server, port 10250. */
export interface KubeletApiFact {
  /** "10.0.0.5:10250" */
  readonly address: string;
  /** `silent`: no answer in time, or no way there. */
  readonly state: 'serves' | 'refused' | 'silent';
  readonly answer: string;
  readonly certificate: CertificateFact | undefined;
  /** What the API server answered when it was asked to call it; undefined where that was not tried. */
  readonly throughServer: string | undefined;
}

export interface NodeFacts extends Common {
  readonly kind: 'node';
  readonly node: Node;
  readonly lease: Lease | undefined;
  readonly pods: readonly Pod[];
  readonly runtime: RuntimeFacts | undefined;
  /** The node is this machine. */
  readonly isHere: boolean;
  /** Undefined: the API server sent no time. */
  readonly clock: ClockFact | undefined;
  readonly agent: AgentFacts | undefined;
  readonly kubeletApi: KubeletApiFact | undefined;
  /** Why the configured serving certificate cannot be read. */
  readonly servingProblem: string | undefined;
}

/** Whether something listens, as the kernel of the pod's network namespace shows it. */
export interface Listening {
  readonly pod: string;
  /** "TCP 8080", addresses left out. */
  readonly ports: readonly ListeningSocket[];
}

/** Where one address and port of a Service leads, by the rules of the node's proxy. */
export interface ProxyRule {
  readonly address: string;
  /** TCP, UDP or SCTP. */
  readonly protocol: string;
  readonly port: number;
  /** "10.244.0.5:8080"; empty: the proxy refuses connections, since there are no endpoints. */
  readonly to: readonly string[];
}

/** The tables of the kernel in which kube-proxy keeps its rules. `ipvs`: its rules are elsewhere, and were not read. */
export interface ProxyFacts {
  readonly kind: 'iptables' | 'nftables' | 'ipvs' | 'none';
  readonly rules: readonly ProxyRule[];
}

/** One TCP connection to an address of the Service, opened and closed again. */
export interface ConnectFact {
  readonly address: string;
  readonly port: number;
  readonly isOpen: boolean;
  /** "connected", "ECONNREFUSED", "no answer". */
  readonly answer: string;
}

/** One question to one DNS server. */
export interface DnsAnswer {
  /** "10.96.0.10:53" */
  readonly server: string;
  readonly name: string;
  readonly addresses: readonly string[];
  /** c-ares' code (ENOTFOUND is NXDOMAIN, ETIMEOUT no answer); undefined where there are addresses. */
  readonly error: string | undefined;
}

/** A server of a resolv.conf, with what stands behind its address. */
export interface DnsHop {
  readonly answer: DnsAnswer;
  /** The Service whose address it is, "kube-system/kube-dns"; undefined: none has it. */
  readonly service: string | undefined;
  /** The same question to each ready endpoint of that Service. */
  readonly endpoints: readonly DnsAnswer[];
}

export interface DnsFacts {
  /** The Service's name, to its end: "web.demo.svc.cluster.local". */
  readonly name: string;
  readonly searches: readonly string[];
  readonly hops: readonly DnsHop[];
  /** Of an ExternalName: what the node's own resolvers answer for that name. */
  readonly upstream: readonly DnsAnswer[];
}

/** From where a Service is looked for. */
export interface Vantage {
  readonly pod: Pod;
  /** Of its namespace. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
}

export interface ServiceFacts extends Common {
  readonly kind: 'service';
  readonly service: Service;
  /** All pods of the namespace. */
  readonly pods: readonly Pod[];
  readonly slices: readonly Stored<EndpointSlice>[];
  readonly policies: readonly Stored<NetworkPolicy>[];
  /** Of pods whose network namespace is on this machine. */
  readonly listening: readonly Listening[];
  /** Undefined: no pod of this machine could be taken; connections are made from the node itself then. */
  readonly vantage: Vantage | undefined;
  /** The node that `proxy` and `connects` are of, where this machine has several; undefined: it has one. */
  readonly node: string | undefined;
  /** Undefined: the tables were not read. */
  readonly proxy: ProxyFacts | undefined;
  /** To the Service's addresses, from `vantage`. */
  readonly connects: readonly ConnectFact[];
  /** To a port of the same address that the Service does not have; undefined where no connection was tried. */
  readonly unusedPort: ConnectFact | undefined;
  /** Undefined: the pod does not use the cluster's DNS, or there is none. */
  readonly dns: DnsFacts | undefined;
}

export interface ClaimFacts extends Common {
  readonly kind: 'pvc';
  readonly claim: ClaimFact;
  readonly volumes: readonly Stored<PersistentVolume>[];
  readonly classNames: readonly string[];
  /** Those that use the claim. */
  readonly pods: readonly Pod[];
}

/** What makes pods, and the pods that it has made. The events are those of all that have a part in it. */
export interface WorkloadFacts extends Common {
  readonly kind: 'workload';
  /** `kind` as the API names it: "ReplicaSet". */
  readonly workload: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly counts: { readonly wanted: number; readonly present: number; readonly ready: number };
  readonly pods: readonly Pod[];
}

export type Facts = PodFacts | GonePodFacts | NodeFacts | ServiceFacts | ClaimFacts | WorkloadFacts;
