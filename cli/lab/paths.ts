// Where everything of one lab lives, and what it is called on this machine. Every name is derived from the root
// directory, so that `nodelet down` finds a lab's leftovers with nothing but that directory's name. Links in that name are
// resolved first: a lab has one name, whichever way its root is reached. Never changes anything on disk.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { resolvePath } from '../../lib/resolve-path.ts';

export const DEFAULT_ROOT = '/var/lib/nodelet';

/** The processes of a lab, in the order in which they start. */
export const LAB_PROCESSES = ['containerd', 'apiserver', 'controlplane', 'agent'] as const;
/** The proxy, netpol, DNS and the registry run unless they were left out, the driver only in a lab that was started with --csi, the others in one with --runtime docker. */
export type LabProcess =
  | (typeof LAB_PROCESSES)[number]
  | 'proxy'
  | 'netpol'
  | 'dns'
  | 'registry'
  | 'csi-driver'
  | 'dockerd'
  | 'dockershim';

/** Parts that may be left out, for others in their place. */
export const LAB_PARTS = ['controllers', 'scheduler', 'proxy', 'dns', 'netpol', 'registry'] as const;
export type LabPart = (typeof LAB_PARTS)[number];

/** Of a lab; and of each node of a lab with several, below the lab's root. */
export interface LabPaths {
  /** Absolute, links resolved. */
  readonly root: string;
  /** Pods log in /var/log/pods, and names and ports are the usual ones. */
  readonly isDefaultRoot: boolean;
  /** Eight hex digits of the root's name; part of every name that must differ between labs. */
  readonly hash: string;
  /** Sockets and volatile state: short, because a socket's path may not pass 107 bytes. */
  readonly runDir: string;
  /** Names the one `nodelet up` that runs this root. */
  readonly lockFile: string;
  /** Ports, addresses and names chosen for this lab (LabState). */
  readonly stateFile: string;
  readonly pkiDir: string;
  /** The admin's. */
  readonly kubeconfig: string;
  readonly kubeconfigs: {
    readonly agent: string;
    /** Of an agent that reaches the API server by a proxy: the server itself writes the others anew when it starts. */
    readonly agentByProxy: string;
    readonly scheduler: string;
    readonly controllerManager: string;
    readonly proxy: string;
    readonly dns: string;
    readonly netpol: string;
  };
  readonly storeFile: string;
  readonly containerd: {
    readonly config: string;
    readonly root: string;
    readonly state: string;
    readonly socket: string;
    readonly ttrpcSocket: string;
    /** Where it looks for images of which registry: a directory for each. */
    readonly registryConfigDir: string;
  };
  /** With --runtime docker. */
  readonly docker: {
    readonly config: string;
    readonly root: string;
    readonly state: string;
    readonly socket: string;
    readonly pidFile: string;
    /** Where the shim serves CRI. */
    readonly shimSocket: string;
    /** The shim's CNI results. */
    readonly cniCacheDir: string;
    /** What the shim knows of OOM kills. */
    readonly oomDir: string;
  };
  readonly cni: {
    /** The chain that the agent runs. */
    readonly confDir: string;
    readonly conflist: string;
    /** containerd's CNI conf dir: one conflist whose plugin is the shim. */
    readonly shimDir: string;
    readonly shimConfDir: string;
    readonly shimBinDir: string;
    /** Debian's plugins. */
    readonly binDir: string;
    readonly cacheDir: string;
    /** host-local's leases. */
    readonly leaseDir: string;
  };
  /** The agent's own root directory. */
  readonly kubeletDir: string;
  readonly kubeletConfig: string;
  /** The loop-device CSI driver's. */
  readonly csi: {
    readonly socket: string;
    /** The agent's plugins_registry. */
    readonly registrationDir: string;
    /** Images of volumes and what is known about them. */
    readonly stateDir: string;
  };
  /** What exercises (`nodelet lab`) make: a directory for each, and which one is under way. */
  readonly exercisesDir: string;
  /** trace.sock and cni.sock of the agent are here. */
  readonly agentSocketDir: string;
  readonly traceSocket: string;
  readonly podLogsDir: string;
  readonly containerLogsDir: string;
  /** The lab's own processes' output. */
  readonly logDir: string;
  readonly pidDir: string;
  /** Of a lab with several nodes: a root for each node, and a directory for its sockets and volatile state. */
  readonly nodesDir: string;
  readonly nodesRunDir: string;
  /** The socket on which such a lab is controlled, in a directory of root's alone. */
  readonly controlSocket: string;
  /** KubeletConfiguration.cgroupRoot. */
  readonly cgroupRoot: string;
  /** The Linux bridge of this lab. */
  readonly bridge: string;
  /** The CNI network's name, which its iptables rules carry in their comments. */
  readonly networkName: string;
  logFile(process: LabProcess): string;
  pidFile(process: LabProcess): string;
}

/**
 * The layout of the lab under `root` (default /var/lib/nodelet). Throws UserError for none, and for a link that leads
 * nowhere: they are no place.
 */
export function labPaths(root: string = DEFAULT_ROOT): LabPaths {
  if (root === '') throw new UserError('--root is empty: give a directory');
  const absolute = resolvePath(root);
  const hash = createHash('sha256').update(absolute).digest('hex').slice(0, 8);
  const isDefaultRoot = absolute === resolvePath(DEFAULT_ROOT);
  return layout({
    root: absolute,
    isDefaultRoot,
    hash,
    runDir: `/run/nodelet/${hash}`,
    cgroupRoot: isDefaultRoot ? '/' : `/nodelet-${hash}`,
    // Interface names hold 15 characters.
    bridge: isDefaultRoot ? 'nodelet0' : `nl-${hash}`,
    networkName: `nodelet-${hash}`,
  });
}

type Place = Pick<LabPaths, 'root' | 'isDefaultRoot' | 'hash' | 'runDir' | 'cgroupRoot' | 'bridge' | 'networkName'>;

/** Where everything is below a root. Pure. */
export function layout(place: Place): LabPaths {
  const { root, runDir, isDefaultRoot } = place;
  const at = (...parts: string[]): string => join(root, ...parts);
  return {
    ...place,
    lockFile: join(runDir, 'up.json'),
    stateFile: at('lab.json'),
    pkiDir: at('pki'),
    kubeconfig: at('kubeconfig'),
    kubeconfigs: {
      agent: at('kubeconfigs', 'agent.kubeconfig'),
      agentByProxy: at('kubeconfigs', 'agent-by-proxy.kubeconfig'),
      scheduler: at('kubeconfigs', 'scheduler.kubeconfig'),
      controllerManager: at('kubeconfigs', 'controller-manager.kubeconfig'),
      proxy: at('kubeconfigs', 'proxy.kubeconfig'),
      dns: at('kubeconfigs', 'dns.kubeconfig'),
      netpol: at('kubeconfigs', 'netpol.kubeconfig'),
    },
    storeFile: at('apiserver', 'store.db'),
    containerd: {
      config: at('containerd', 'config.toml'),
      root: at('containerd', 'root'),
      state: join(runDir, 'containerd'),
      socket: join(runDir, 'containerd.sock'),
      ttrpcSocket: join(runDir, 'containerd.sock.ttrpc'),
      registryConfigDir: at('containerd', 'certs.d'),
    },
    docker: {
      config: at('docker', 'daemon.json'),
      root: at('docker', 'root'),
      state: join(runDir, 'docker'),
      socket: join(runDir, 'docker.sock'),
      pidFile: join(runDir, 'docker.pid'),
      shimSocket: join(runDir, 'dockershim.sock'),
      cniCacheDir: at('cni', 'dockershim'),
      oomDir: at('docker', 'oom'),
    },
    cni: {
      confDir: at('cni', 'net.d'),
      conflist: at('cni', 'net.d', '10-nodelet.conflist'),
      shimDir: at('cni', 'shim'),
      shimConfDir: at('cni', 'shim', 'net.d'),
      shimBinDir: at('cni', 'shim', 'bin'),
      binDir: '/usr/lib/cni',
      cacheDir: at('cni', 'cache'),
      leaseDir: at('cni', 'leases'),
    },
    kubeletDir: at('kubelet'),
    kubeletConfig: at('kubelet.yaml'),
    csi: {
      socket: at('kubelet', 'plugins', 'loop.csi.nodelet', 'csi.sock'),
      registrationDir: at('kubelet', 'plugins_registry'),
      stateDir: at('csi'),
    },
    exercisesDir: at('exercises'),
    agentSocketDir: runDir,
    traceSocket: join(runDir, 'trace.sock'),
    podLogsDir: isDefaultRoot ? '/var/log/pods' : at('log', 'pods'),
    containerLogsDir: isDefaultRoot ? '/var/log/containers' : at('log', 'containers'),
    logDir: at('logs'),
    pidDir: join(runDir, 'pids'),
    nodesDir: at('nodes'),
    nodesRunDir: join(runDir, 'nodes'),
    controlSocket: join(runDir, 'control', 'lab.sock'),
    logFile: (name) => at('logs', `${name}.log`),
    pidFile: (name) => join(runDir, 'pids', `${name}.json`),
  };
}
