import { describe, expect, it } from 'vitest';
import {
  type ContainerdConfig,
  hasSysResource,
  parseContainerdVersion,
  renderContainerdConfig,
  renderToml,
} from '../../../../cli/lab/containerd-config.ts';

const config = (over: Partial<ContainerdConfig> = {}): ContainerdConfig => ({
  version: { major: 1, minor: 6 },
  root: '/lab/containerd/root',
  state: '/run/lab/containerd',
  socket: '/run/lab/containerd.sock',
  ttrpcSocket: '/run/lab/containerd.sock.ttrpc',
  runcRoot: '/run/lab/containerd/runc',
  sandboxImage: 'registry.k8s.io/pause:3.9',
  cniConfDir: '/lab/cni/net.d',
  cniBinDir: '/lab/cni/bin',
  cgroupDriver: 'cgroupfs',
  snapshotter: 'overlayfs',
  restrictOomScoreAdj: false,
  registryConfigDir: '/lab/containerd/certs.d',
  ...over,
});

/** The lines of one table of a TOML text. */
function table(text: string, name: string): readonly string[] {
  const lines = text.split('\n');
  const start = lines.indexOf(`[${name}]`);
  if (start < 0) return [];
  const end = lines.findIndex((line, index) => index > start && (line === '' || line.startsWith('[')));
  return lines.slice(start + 1, end < 0 ? undefined : end);
}

describe('the version of an installed containerd', () => {
  it.each([
    ['containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3', { major: 1, minor: 6 }],
    [
      'containerd github.com/containerd/containerd v1.7.24 88bf19b2105c8b17560993bee28a01ddc2f97182',
      { major: 1, minor: 7 },
    ],
    [
      'containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376',
      { major: 2, minor: 1 },
    ],
    ['containerd github.com/containerd/containerd/v2 2.0.5~ds1', { major: 2, minor: 0 }],
    ['podman version unknown', undefined],
  ])('is read from "%s"', (text, version) => {
    expect(parseContainerdVersion(text)).toEqual(version);
  });
});

describe('CAP_SYS_RESOURCE', () => {
  it.each([
    ['000001ffffffffff', true],
    ['000001fffeffffff', false],
    ['0000000001000000', true],
    ['0000000000000000', false],
  ])('of CapEff %s is %s', (mask, expected) => {
    expect(hasSysResource(`Name:\tnode\nCapPrm:\tffffffffffffffff\nCapEff:\t${mask}\n`)).toBe(expected);
  });
});

describe('config.toml', () => {
  it('is version 2 for containerd 1.x, with one CRI plugin table', () => {
    const text = renderContainerdConfig(config());
    expect(text.split('\n')[0]).toBe('version = 2');
    expect(table(text, 'plugins."io.containerd.grpc.v1.cri"')).toContain('sandbox_image = "registry.k8s.io/pause:3.9"');
    expect(table(text, 'plugins."io.containerd.grpc.v1.cri".cni')).toEqual([
      'bin_dir = "/lab/cni/bin"',
      'conf_dir = "/lab/cni/net.d"',
      'max_conf_num = 1',
    ]);
    expect(text).not.toContain('io.containerd.cri.v1');
  });

  it('gives shims of a busy machine time to answer a containerd that comes back', () => {
    expect(table(renderContainerdConfig(config()), 'timeouts')).toEqual([
      '"io.containerd.timeout.shim.load" = "60s"',
      '"io.containerd.timeout.task.state" = "30s"',
    ]);
  });

  it('is version 3 for containerd 2.x, with images and runtime apart', () => {
    const text = renderContainerdConfig(config({ version: { major: 2, minor: 0 } }));
    expect(text.split('\n')[0]).toBe('version = 3');
    expect(table(text, 'plugins."io.containerd.cri.v1.images".pinned_images')).toEqual([
      'sandbox = "registry.k8s.io/pause:3.9"',
    ]);
    expect(table(text, 'plugins."io.containerd.cri.v1.runtime".cni')).toContain('bin_dir = "/lab/cni/bin"');
    expect(table(text, 'plugins."io.containerd.grpc.v1.cri"')).toContain('stream_server_port = "0"');
    expect(text).not.toContain('sandbox_image');
  });

  it('names plugin directories as a list from 2.1, where the single one is deprecated', () => {
    const text = renderContainerdConfig(config({ version: { major: 2, minor: 1 } }));
    expect(table(text, 'plugins."io.containerd.cri.v1.runtime".cni')).toContain('bin_dirs = ["/lab/cni/bin"]');
    expect(text).not.toContain('bin_dir =');
  });

  it.each([
    [{ major: 1, minor: 6 }, 'plugins."io.containerd.grpc.v1.cri"'],
    [{ major: 2, minor: 1 }, 'plugins."io.containerd.cri.v1.runtime"'],
  ])('of containerd %o carries oom_score_adj restriction, runc directory and cgroup driver', (version, prefix) => {
    const text = renderContainerdConfig(config({ version, restrictOomScoreAdj: true, cgroupDriver: 'systemd' }));
    expect(table(text, prefix)).toContain('restrict_oom_score_adj = true');
    expect(table(text, `${prefix}.containerd.runtimes.runc.options`)).toEqual([
      'SystemdCgroup = true',
      'Root = "/run/lab/containerd/runc"',
    ]);
  });

  it('keeps the v1 runtime plugin, without which CRI of 1.6 does not load', () => {
    expect(renderContainerdConfig(config())).not.toContain('io.containerd.runtime.v1.linux');
  });

  it('names every place that would otherwise be the system containerd’s', () => {
    const text = renderContainerdConfig(config());
    for (const line of ['root = "/lab/containerd/root"', 'state = "/run/lab/containerd"']) expect(text).toContain(line);
    expect(table(text, 'grpc')).toEqual(['address = "/run/lab/containerd.sock"']);
    expect(table(text, 'ttrpc')).toEqual(['address = "/run/lab/containerd.sock.ttrpc"']);
    expect(table(text, 'plugins."io.containerd.internal.v1.opt"')).toEqual(['path = "/lab/containerd/root/opt"']);
  });
});

describe('TOML', () => {
  it('puts plain values before sub-tables and quotes what needs it', () => {
    expect(renderToml({ sub: { 'a.b': { on: true } }, list: ['x', 'y'], text: 'say "hi"\\' })).toBe(
      'list = ["x", "y"]\ntext = "say \\"hi\\"\\\\"\n\n[sub."a.b"]\non = true\n',
    );
  });
});
