// clear-floor.ts <root> <bridge> <cgroup>: takes down the floor's containerd, its shims, mounts, bridge and cgroups, after a
// benchmark that was killed. Its guardian runs this.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDirectory, removeCgroupTree } from '../../agent/node/cgroup-tree.ts';
import { clearContainerd } from '../../cli/lab/containerd.ts';
import { exec } from '../../lib/exec.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { containerdPaths } from '../e2e/support/containerd.ts';

const CGROUPS = '/sys/fs/cgroup';

const [root, bridge, cgroup] = process.argv.slice(2);
if (root === undefined || bridge === undefined || cgroup === undefined) {
  throw new Error('usage: clear-floor.ts <root> <bridge> <cgroup>');
}
await clearContainerd(containerdPaths(root));
await exec('ip', ['link', 'delete', bridge]);
await removeTree(root);
// Of v1 there are a dozen hierarchies, of v2 one.
for (const hierarchy of ['', ...readdirSync(CGROUPS)]) {
  const mountPoint = join(CGROUPS, hierarchy);
  if (isDirectory(mountPoint)) removeCgroupTree(join(mountPoint, cgroup));
}
