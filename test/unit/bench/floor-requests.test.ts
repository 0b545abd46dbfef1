import { describe, expect, test } from 'vitest';
import { bareTemplate, type FloorTemplate, floorRequests, recordedInfo } from '../../bench/floor-requests.ts';

const template: FloorTemplate = {
  sandbox: {
    metadata: { name: 'p', uid: 'u', namespace: 'bench', attempt: 0 },
    hostname: 'p',
    log_directory: '/logs/p',
    dns_config: { servers: ['10.0.0.10'] },
    linux: { cgroup_parent: '/kubepods/podu', security_context: { seccomp: { profile_type: 'RuntimeDefault' } } },
  },
  container: {
    metadata: { name: 'main', attempt: 0 },
    image: { image: 'busybox' },
    command: ['sleep'],
    log_path: 'main/0.log',
    mounts: [{ host_path: '/pods/u/etc-hosts', container_path: '/etc/hosts' }],
    linux: { resources: { cpu_shares: 2 } },
  },
};

describe('the requests of the floor', () => {
  const { sandboxConfig, config } = floorRequests(template, {
    name: 'floor-7',
    logDirectory: '/floor/logs/7',
    cgroupRoot: '/floor',
    copyOf: (path) => `/copy${path}`,
  });

  test('are the template’s under another name and in other places', () => {
    expect(sandboxConfig.metadata).toEqual({ name: 'floor-7', uid: 'floor-7-uid', namespace: 'bench', attempt: 0 });
    expect([sandboxConfig.hostname, sandboxConfig.log_directory]).toEqual(['floor-7', '/floor/logs/7']);
    expect(sandboxConfig.linux?.cgroup_parent).toBe('/floor/kubepods/besteffort/podfloor-7');
    expect(config.mounts).toEqual([{ host_path: '/copy/pods/u/etc-hosts', container_path: '/etc/hosts' }]);
  });

  test('cost the runtime all that the template’s did', () => {
    expect(sandboxConfig.dns_config).toEqual(template.sandbox.dns_config);
    expect(sandboxConfig.linux?.security_context).toEqual(template.sandbox.linux?.security_context);
    expect(config).toEqual({ ...template.container, mounts: config.mounts });
  });
});

test('a bare pod has the same image and command, and nothing that the runtime would have to set up', () => {
  const { sandbox, container } = bareTemplate(template);
  expect([container.image, container.command, container.log_path]).toEqual([
    template.container.image,
    ['sleep'],
    'main/0.log',
  ]);
  expect([container.mounts, sandbox.dns_config, sandbox.linux?.security_context?.seccomp]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('a runtime that records no config is recognised', () => {
  const text = JSON.stringify({ config: { hostname: 'p' }, sandboxID: 's' });
  expect(recordedInfo({ info: text })).toEqual({ config: { hostname: 'p' }, sandboxID: 's' });
  expect(() => recordedInfo({})).toThrow('containerd reports no config');
});
