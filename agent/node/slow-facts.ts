// Facts of this machine from systeminformation. A program of its own: it prints one line of JSON, so that the agent does
// not keep 10 MB of a library that it needs once.

import si from 'systeminformation';

export interface SlowFacts {
  readonly os: { readonly distro: string; readonly release: string; readonly codename: string };
  readonly uuid: { readonly hardware: string; readonly os: string };
  /** Logical processors; 0 when unknown. */
  readonly cores: number;
  /** Mounted file systems, sizes in bytes. */
  readonly disks: readonly { readonly mount: string; readonly size: number }[];
}

async function slowFacts(): Promise<SlowFacts> {
  const [{ distro, release, codename }, uuid, cpu, disks] = await Promise.all([
    si.osInfo(),
    si.uuid(),
    si.cpu(),
    si.fsSize(),
  ]);
  return {
    os: { distro, release, codename },
    uuid: { hardware: uuid.hardware, os: uuid.os },
    cores: cpu.cores,
    disks: disks.map(({ mount, size }) => ({ mount, size })),
  };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await slowFacts()));
