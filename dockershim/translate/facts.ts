// What the translations have to know of the Docker Engine and the machine. Read once per connection; pure data.

export interface DockerFacts {
  /** Docker's API version, as minor of 1.x: 41 for Docker 20.10. */
  readonly apiMinor: number;
  readonly version: string;
  readonly cgroupVersion: 1 | 2;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  /** "seccomp", "apparmor", "selinux", … */
  readonly security: ReadonlySet<string>;
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

/** Of Docker's answers to `version` and `info`. Pure. */
export function dockerFacts(apiVersion: string, info: Info, minOomScoreAdj: number): DockerFacts {
  return {
    apiMinor: Number(/^1\.(\d+)$/.exec(apiVersion)?.[1] ?? 0),
    version: info.ServerVersion ?? '',
    cgroupVersion: info.CgroupVersion === '2' ? 2 : 1,
    cgroupDriver: info.CgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs',
    security: new Set((info.SecurityOptions ?? []).map(securityName)),
    runtimes: new Set(Object.keys(info.Runtimes ?? {})),
    defaultRuntime: info.DefaultRuntime ?? 'runc',
    rootDir: info.DockerRootDir ?? '/var/lib/docker',
    minOomScoreAdj,
  };
}

/** CAP_SYS_RESOURCE is bit 24 of CapEff in /proc/PID/status. Without it no process goes below its own oom_score_adj. */
export function lowestOomScoreAdj(procStatus: string, ownScore: string): number {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(procStatus)?.[1];
  const mayLower = effective !== undefined && (BigInt(`0x${effective}`) & (1n << 24n)) !== 0n;
  return mayLower ? -1000 : Number(ownScore.trim());
}
