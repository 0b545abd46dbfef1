import { expect, test } from 'vitest';
import { lostShims } from '../../e2e/support/shims.ts';

const SOCKET = '/run/lab/containerd.sock';
const shim = (pid: number, id: string, address = SOCKET, comm = 'containerd-shim') => ({
  pid,
  comm,
  argv: ['/usr/bin/containerd-shim-runc-v2', '-namespace', 'k8s.io', '-id', id, '-address', address],
});

test.each([
  ['of a container that is known', [shim(1, 'a')], []],
  ['of none', [shim(1, 'a'), shim(2, 'b')], [2]],
  ['of another containerd', [shim(2, 'b', '/run/other.sock')], []],
  ['that names no container', [{ ...shim(3, 'b'), argv: ['shim', '-address', SOCKET] }], [3]],
  ['that is no shim', [shim(2, 'b', SOCKET, 'sh')], []],
])('a shim %s', (_, processes, pids) => {
  const lost = lostShims(processes, SOCKET, new Set(['a']));
  expect(lost.map((line) => Number(line.split(' ')[1]))).toEqual(pids);
});
