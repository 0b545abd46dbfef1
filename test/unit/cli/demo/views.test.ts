import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INTERFACES, PROCESSES, showsInterfaces, showsProcesses, type View } from '../../../../cli/demo/views.ts';
import { execOk } from '../../../../lib/exec.ts';

describe('an image that has neither ip nor ps', () => {
  let bin: string;
  beforeEach(() => {
    bin = mkdtempSync(join(tmpdir(), 'nodelet-views-'));
    for (const tool of ['sh', 'cat', 'grep', 'tr']) symlinkSync(`/bin/${tool}`, join(bin, tool));
  });
  afterEach(() => rmSync(bin, { recursive: true, force: true }));
  const run = ({ command: [file = '', ...args] }: View): Promise<string> => execOk(file, args, { env: { PATH: bin } });

  it('shows its interfaces and addresses from /proc', async () => {
    const output = await run(INTERFACES);
    expect(output).toContain('this image has no ip');
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    const address = own.find(({ family }) => family === 'IPv4')?.address ?? '';
    expect(output).toMatch(new RegExp(`\\|-- ${address.replaceAll('.', '\\.')}$`, 'm'));
  });

  it('shows its processes from /proc', async () => {
    const output = await run(PROCESSES);
    expect(output).toContain('this image has no ps');
    expect(output).toMatch(new RegExp(`^${process.pid} .*node`, 'm'));
  });

  it('is asked only what it lacks', async () => {
    writeFileSync(join(bin, 'ip'), '#!/bin/sh\necho "ip said $*"\n');
    writeFileSync(join(bin, 'ps'), '#!/bin/sh\necho "ps said $*"\n');
    for (const tool of ['ip', 'ps']) chmodSync(join(bin, tool), 0o755);
    expect([await run(INTERFACES), await run(PROCESSES)]).toEqual(['ip said addr\n', 'ps said -e\n']);
  });
});

it.each<[string, string, boolean]>([
  ['of ip addr', '2: eth0@if7: <UP>\n    inet 10.244.1.2/24 brd 10.244.1.255 scope global eth0\n', true],
  ['of /proc/net', '  eth0: 876 10\n           |-- 10.244.1.2\n              /32 host LOCAL\n', true],
  ['of another pod', '2: eth0@if7: <UP>\n    inet 10.244.1.23/24 scope global eth0\n', false],
  ['of the node', '2: eth0: <UP>\n5: veth12@if2: <UP>\n    inet 10.244.1.2/24\n', false],
])('interfaces: the output %s', (_, output, shown) => {
  expect(showsInterfaces(output, '10.244.1.2')).toBe(shown);
});

it.each<[string, string, boolean]>([
  ['of a pod', '    1 root     nginx: master process nginx -g daemon off;\n', true],
  ['of the node', '    1 init\n  300 containerd\n  400 nginx\n', false],
  ['of another pod', '    1 sleep\n', false],
])('processes: the output %s', (_, output, shown) => {
  expect(showsProcesses(output)).toBe(shown);
});
