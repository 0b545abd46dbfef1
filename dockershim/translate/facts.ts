// What the translations have to know of the Docker Engine and the machine. Read once per connection; pure data.

export interface DockerFacts {
  /** Docker's API version, as minor of 1.x: 41 for Docker 20.10. */
  readonly apiMinor: number;
  readonly version: string;
  readonly cgroupVersion: 1 | 2;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  /** "seccomp", "apparmor", "selinux", … that containers can have. */
  readonly security: ReadonlySet<string>;
  /**
   * The kernel has AppArmor, so that Docker gives every container its own profile unless an option switches it off, and the machine has no
   * apparmor_parser to load that profile with: each start would fail.
   */
  readonly apparmorUnloadable: boolean;
  /** Names of OCI runtimes. */
  readonly runtimes: ReadonlySet<string>;
  readonly defaultRuntime: string;
  readonly rootDir: string;
  /** The lowest oom_score_adj that this machine lets Docker set; -1000 where there is no limit. */
  readonly minOomScoreAdj: number;
}

interface Info {
  readonly CgroupVersion?: string;
  readonly CgroupDriver?: string;
  readonly SecurityOptions?: readonly string[];
  readonly Runtimes?: Readonly<Record<string, unknown>>;
  readonly DefaultRuntime?: string;
  readonly DockerRootDir?: string;
  readonly ServerVersion?: string;
}

/** "name=seccomp,profile=default" → "seccomp". */
function securityName(option: string): string {
  return /(?:^|,)name=([^,]+)/.exec(option)?.[1] ?? option;
}

/** What the shim reads from the machine itself, which is the daemon's too. */
export interface MachineFacts {
  readonly minOomScoreAdj: number;
  readonly hasApparmorParser: boolean;
}

/** Of Docker's answers to `version` and `info`. Pure. */
export function dockerFacts(apiVersion: string, info: Info, machine: MachineFacts): DockerFacts {
  const security = new Set((info.SecurityOptions ?? []).map(securityName));
  // Docker names what the kernel has; containerd, too, counts AppArmor only where the program is.
  const apparmorUnloadable = security.has('apparmor') && !machine.hasApparmorParser;
  if (apparmorUnloadable) security.delete('apparmor');
  return {
    apiMinor: Number(/^1\.(\d+)$/.exec(apiVersion)?.[1] ?? 0),
    version: info.ServerVersion ?? '',
    cgroupVersion: info.CgroupVersion === '2' ? 2 : 1,
    cgroupDriver: info.CgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs',
    security,
    apparmorUnloadable,
    runtimes: new Set(Object.keys(info.Runtimes ?? {})),
    defaultRuntime: info.DefaultRuntime ?? 'runc',
    rootDir: info.DockerRootDir ?? '/var/lib/docker',
    minOomScoreAdj: machine.minOomScoreAdj,
  };
}

/** CAP_SYS_RESOURCE is bit 24 of CapEff in /proc/PID/status. Without it no process goes below its own oom_score_adj. */
export function lowestOomScoreAdj(procStatus: string, ownScore: string): number {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(procStatus)?.[1];
  const mayLower = effective !== undefined && (BigInt(`0x${effective}`) & (1n << 24n)) !== 0n;
  return mayLower ? -1000 : Number(ownScore.trim());
}
