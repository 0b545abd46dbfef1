import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { exec } from '../../../../lib/exec.ts';

const NODELET = fileURLToPath(new URL('../../../../bin/nodelet', import.meta.url));
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'nodelet-reader-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Writes into a named pipe whose only reader has gone for certain, whatever is faster. */
const UNREAD = 'mkfifo "$1" && { (exec 3<"$1") & exec 4>"$1"; wait; shift; exec "$@" >&4; }';

test.each([[['lab', 'list']], [['experiment', 'list']], [['kubeconfig', '--help']]])(
  'nodelet %j without a reader ends quietly, as in "… | head"',
  async (words) => {
    const args = ['-c', UNREAD, 'sh', join(dir, 'unread'), NODELET, ...words];
    const { code, stderr } = await exec('sh', args, { timeoutMs: 110_000 });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  },
);
