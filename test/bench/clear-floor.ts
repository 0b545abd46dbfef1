// clear-floor.ts <root> <bridge>: takes down the floor's containerd, its shims, mounts and bridge, after a benchmark that was
// killed. Its guardian runs this.

import { clearContainerd } from '../../cli/lab/containerd.ts';
import { exec } from '../../lib/exec.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { containerdPaths } from '../e2e/support/containerd.ts';

const [root, bridge] = process.argv.slice(2);
if (root === undefined || bridge === undefined) throw new Error('usage: clear-floor.ts <root> <bridge>');
await clearContainerd(containerdPaths(root));
await exec('ip', ['link', 'delete', bridge]);
await removeTree(root);
