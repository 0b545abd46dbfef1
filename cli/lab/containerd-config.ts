// containerd's config.toml for a lab: pure text from a few facts. Version 2 of the format for containerd 1.x,
// version 3 for 2.x. Never reads or writes a file.

export interface ContainerdVersion {
  readonly major: number;
  readonly minor: number;
}

export interface ContainerdConfig {
  readonly version: ContainerdVersion;
  /** Persistent data: images, snapshots, metadata. */
  readonly root: string;
  /** Volatile data: sandboxes, bundles, network namespaces. */
  readonly state: string;
  readonly socket: string;
  readonly ttrpcSocket: string;
  /** Where `runc` keeps its state; one per lab, so that a lab's containers can be listed without containerd. */
  readonly runcRoot: string;
  readonly sandboxImage: string;
  readonly cniConfDir: string;
  readonly cniBinDir: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  readonly snapshotter: 'overlayfs' | 'native';
  /** Without CAP_SYS_RESOURCE a process may not lower oom_score_adj below its own: containerd then uses its own. */
  readonly restrictOomScoreAdj: boolean;
  /** A directory of hosts.toml files per registry. */
  readonly registryConfigDir: string;
}

type Value = string | boolean | number | readonly string[];
interface Table {
  readonly [key: string]: Value | Table;
}

/** Plugins that a lab never uses; each costs start-up time, a probe of the machine, or a directory outside the root. */
const DISABLED = [
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.blockfile',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.internal.v1.restart',
  'io.containerd.internal.v1.tracing',
  'io.containerd.tracing.processor.v1.otlp',
  'io.containerd.nri.v1.nri',
];

/** "containerd github.com/containerd/containerd 1.6.20~ds1 …" or "… v2.0.1 …"; undefined for anything else. */
export function parseContainerdVersion(text: string): ContainerdVersion | undefined {
  const match = /\sv?(\d+)\.(\d+)\.\d+/.exec(text);
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]) };
}

/** CAP_SYS_RESOURCE is bit 24 of CapEff in /proc/PID/status. */
export function hasSysResource(procStatus: string): boolean {
  const match = /^CapEff:\s*([0-9a-f]+)$/m.exec(procStatus);
  return match?.[1] !== undefined && (BigInt(`0x${match[1]}`) & (1n << 24n)) !== 0n;
}

export function renderContainerdConfig(config: ContainerdConfig): string {
  const v3 = config.version.major >= 2;
  return renderToml({
    version: v3 ? 3 : 2,
    root: config.root,
    state: config.state,
    disabled_plugins: DISABLED,
    // An own oom_score would need CAP_SYS_RESOURCE as well.
    oom_score: 0,
    grpc: { address: config.socket },
    ttrpc: { address: config.ttrpcSocket },
    // Of a containerd that comes back: a shim that the machine gives no time for 5 s, or 2 s, is taken for lost, and its container
    // is in the state unknown, which a kubelet ends and starts anew. A dead shim's socket refuses at once.
    timeouts: { 'io.containerd.timeout.shim.load': '60s', 'io.containerd.timeout.task.state': '30s' },
    plugins: {
      ...(v3 ? criPluginsV3(config) : criPluginV2(config)),
      // The default would make /opt/containerd.
      'io.containerd.internal.v1.opt': { path: `${config.root}/opt` },
      // Images come and go with tests; nothing is gained by sweeping right after start.
      'io.containerd.gc.v1.scheduler': { startup_delay: '1s' },
    },
  });
}

function runc(config: ContainerdConfig): Table {
  return {
    runtime_type: 'io.containerd.runc.v2',
    options: { SystemdCgroup: config.cgroupDriver === 'systemd', Root: config.runcRoot },
  };
}

function criPluginV2(config: ContainerdConfig): Table {
  return {
    'io.containerd.grpc.v1.cri': {
      sandbox_image: config.sandboxImage,
      stream_server_address: '127.0.0.1',
      stream_server_port: '0',
      // Network namespaces live and die with this containerd's state directory.
      netns_mounts_under_state_dir: true,
      restrict_oom_score_adj: config.restrictOomScoreAdj,
      enable_unprivileged_ports: true,
      enable_unprivileged_icmp: true,
      cni: { bin_dir: config.cniBinDir, conf_dir: config.cniConfDir, max_conf_num: 1 },
      containerd: {
        snapshotter: config.snapshotter,
        default_runtime_name: 'runc',
        runtimes: { runc: runc(config) },
      },
      registry: { config_path: config.registryConfigDir },
    },
  };
}

function criPluginsV3(config: ContainerdConfig): Table {
  // bin_dirs came with 2.1, where bin_dir is deprecated.
  const manyBinDirs = config.version.major > 2 || config.version.minor >= 1;
  return {
    'io.containerd.cri.v1.images': {
      snapshotter: config.snapshotter,
      pinned_images: { sandbox: config.sandboxImage },
      registry: { config_path: config.registryConfigDir },
    },
    'io.containerd.cri.v1.runtime': {
      netns_mounts_under_state_dir: true,
      restrict_oom_score_adj: config.restrictOomScoreAdj,
      enable_unprivileged_ports: true,
      enable_unprivileged_icmp: true,
      cni: {
        ...(manyBinDirs ? { bin_dirs: [config.cniBinDir] } : { bin_dir: config.cniBinDir }),
        conf_dir: config.cniConfDir,
        max_conf_num: 1,
      },
      containerd: { default_runtime_name: 'runc', runtimes: { runc: runc(config) } },
    },
    'io.containerd.grpc.v1.cri': { stream_server_address: '127.0.0.1', stream_server_port: '0' },
  };
}

// ---------------------------------------------------------------- TOML, as much of it as a config needs

function quote(text: string): string {
  // JSON's string escapes are a subset of TOML's basic string escapes.
  return JSON.stringify(text);
}

function renderValue(value: Value): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'object') return `[${value.map(quote).join(', ')}]`;
  return String(value);
}

function isTable(value: Value | Table): value is Table {
  return typeof value === 'object' && !Array.isArray(value);
}

/** Plain values first, then sub-tables, as TOML demands. */
export function renderToml(table: Table, path: readonly string[] = []): string {
  const entries = Object.entries(table);
  const lines: string[] = [];
  for (const [key, value] of entries) {
    if (!isTable(value)) lines.push(`${tomlKey(key)} = ${renderValue(value)}`);
  }
  const header = path.length === 0 || lines.length === 0 ? '' : `[${path.map(tomlKey).join('.')}]\n`;
  const sections = [lines.length === 0 ? '' : `${header}${lines.join('\n')}\n`];
  for (const [key, value] of entries) {
    if (isTable(value)) sections.push(renderToml(value, [...path, key]));
  }
  return sections.filter((section) => section !== '').join('\n');
}

function tomlKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quote(key);
}
