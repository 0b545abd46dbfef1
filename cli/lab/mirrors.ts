// Where containerd looks for images of the usual registries: its hosts.toml files, a directory for each registry. The lab's registry, or another mirror, comes
// first; a registry that can be reached is behind it.

import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { registryAnswers } from '../../labs/images/import.ts';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { renderToml } from './containerd-config.ts';

/** By the host in images' names: where the registry is. */
export const MIRRORED: ReadonlyMap<string, string> = new Map([
  ['docker.io', 'registry-1.docker.io'],
  ['registry.k8s.io', 'registry.k8s.io'],
  ['k8s.gcr.io', 'k8s.gcr.io'],
  ['gcr.io', 'gcr.io'],
  ['ghcr.io', 'ghcr.io'],
  ['quay.io', 'quay.io'],
  ['public.ecr.aws', 'public.ecr.aws'],
  ['mcr.microsoft.com', 'mcr.microsoft.com'],
]);

export interface MirrorPlan {
  /** URL of the mirror. */
  readonly mirror: string;
  /** Hosts in images' names whose registries containerd falls back to. */
  readonly reachable: ReadonlySet<string>;
}

/** Of those that are mirrored. `probe`: of the registry's own host. */
export async function reachableRegistries(
  probe: (registry: string) => Promise<boolean> = registryAnswers,
): Promise<ReadonlySet<string>> {
  const answers = await Promise.all(
    [...MIRRORED].map(async ([host, registry]) => ((await probe(registry)) ? [host] : [])),
  );
  return new Set(answers.flat());
}

/** A hosts.toml. Pure. */
export function hostsFile(host: string, registry: string, { mirror, reachable }: MirrorPlan): string {
  const text = reachable.has(host)
    ? renderToml({ server: `https://${registry}`, host: { [mirror]: { capabilities: ['pull', 'resolve'] } } })
    : // A registry that cannot be reached would only hide the mirror's answer behind its own error. Without the table containerd 1.6 takes
      // the file for damaged, and goes on without it.
      `${renderToml({ server: mirror })}\n[host]\n`;
  return `# Written by nodelet up.\n${text}`;
}

/** `configDir`: containerd's config_path, which it reads at each pull. Without a plan the mirrors of an earlier start are removed. */
export async function writeMirrors(configDir: string, plan: MirrorPlan | undefined): Promise<void> {
  for (const [host, registry] of MIRRORED) {
    const directory = join(configDir, host);
    const file = join(directory, 'hosts.toml');
    if (plan === undefined) await rm(file, { force: true });
    else {
      await mkdir(directory, { recursive: true });
      await writeFileAtomic(file, hostsFile(host, registry, plan));
    }
  }
}
