// Kills by the out-of-memory killer, from the kernel's messages. Pure.

import type { OomKill } from './facts.ts';

/**
 * `text`: messages as /dev/kmsg has them. `uid`: the pod's. The kernel writes two lines for each kill: one that names the
 * cgroup (`oom-kill:…,task_memcg=/kubepods/…,task=sh,pid=1,…`), and one with the process' memory (`… anon-rss:1024kB …`).
 */
export function parseOomKills(text: string, uid: string): readonly OomKill[] {
  const kills: OomKill[] = [];
  // systemd's slices have underscores in the place of dashes.
  const names = [uid, uid.replaceAll('-', '_')];
  for (const line of text.split('\n')) {
    const [, cgroup = '', task = '', pid = ''] = /oom-kill:.*task_memcg=([^,]+),task=(.+),pid=(\d+),/.exec(line) ?? [];
    if (cgroup !== '' && names.some((name) => cgroup.includes(name))) {
      const container = /([0-9a-f]{64})(?:\.scope)?$/.exec(cgroup)?.[1] ?? '';
      kills.push({ pid: Number(pid), process: task, container, residentBytes: undefined });
      continue;
    }
    const [, killed = '', resident = ''] = /Killed process (\d+) .*anon-rss:(\d+)kB/.exec(line) ?? [];
    const last = kills.at(-1);
    if (last !== undefined && killed !== '' && last.pid === Number(killed)) {
      kills[kills.length - 1] = { ...last, residentBytes: Number(resident) * 1024 };
    }
  }
  return kills;
}
