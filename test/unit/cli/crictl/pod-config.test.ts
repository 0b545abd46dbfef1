import { describe, expect, test } from 'vitest';
import { imagesOf } from '../../../../cli/crictl/lifecycle.ts';
import { parseContainerConfig, parseSandboxConfig } from '../../../../cli/crictl/pod-config.ts';

describe('a pod’s configuration', () => {
  // As in the documentation of cri-tools, which has a field that CRI does not.
  test('in YAML', () => {
    const text = `metadata:
  attempt: 1
  name: busybox-sandbox
  namespace: default
  uid: hdishd83djaidwnduwk28bcsb
log_directory: /tmp
linux:
  namespaces:
    options: {}
`;
    const { config, warnings } = parseSandboxConfig(text, 'made');
    expect(config).toEqual({
      metadata: { attempt: 1, name: 'busybox-sandbox', namespace: 'default', uid: 'hdishd83djaidwnduwk28bcsb' },
      log_directory: '/tmp',
      linux: {},
    });
    expect(warnings).toEqual([
      expect.stringContaining('PodSandboxConfig has no field "linux.namespaces"'),
      expect.stringContaining('cgroup_parent is not set'),
    ]);
  });

  test('in JSON; a uid is made where there is none', () => {
    const text = '{"metadata":{"name":"a","namespace":"b"},"port_mappings":[{"protocol":1,"host_port":8080}]}';
    expect(parseSandboxConfig(text, 'made')).toEqual({
      config: {
        metadata: { name: 'a', namespace: 'b', uid: 'made' },
        port_mappings: [{ protocol: 'UDP', host_port: 8080 }],
      },
      warnings: [],
    });
  });

  test.each([
    ['{}', 'metadata is not set'],
    ['metadata: {name: a}', 'name or namespace is not in metadata {"name":"a"}'],
    ['a: [', 'Flow sequence'],
    ['metadata: 5', 'metadata: 5 is no PodSandboxMetadata object'],
  ])('%j is refused', (text, message) => {
    expect(() => parseSandboxConfig(text, 'made')).toThrow(message);
  });
});

describe('a container’s configuration', () => {
  test('keeps all digits, and says which image was meant', () => {
    const text = `metadata: {name: busybox}
image: {image: docker.io/busybox}
command: [top, 1]
linux: {resources: {memory_limit_in_bytes: 9223372036854775807, cpu_shares: 2}}
mounts: [{image: {image: other}}, {host_path: /x}]
`;
    const { config, image, warnings } = parseContainerConfig(text);
    expect({ image, warnings }).toEqual({ image: 'docker.io/busybox', warnings: [] });
    expect(config).toMatchObject({
      image: { image: 'docker.io/busybox', user_specified_image: 'docker.io/busybox' },
      command: ['top', '1'],
      linux: { resources: { memory_limit_in_bytes: '9223372036854775807', cpu_shares: '2' } },
    });
    expect(imagesOf(config)).toEqual(['docker.io/busybox', 'other']);
  });

  test.each([
    ['metadata: {name: a}', 'image is not set'],
    ['metadata: {name: a}\nimage: {}', 'image field is not set in image {}'],
    ['image: {image: x}', 'metadata is not set'],
    ['metadata: {}\nimage: {image: x}', 'name is not in metadata {}'],
    ['metadata: {name: a}\nimage: {image: x}\ntty: 1', 'tty: 1 is no bool'],
  ])('%j is refused', (text, message) => {
    expect(() => parseContainerConfig(text)).toThrow(message);
  });
});
