import { describe, expect, test } from 'vitest';
import { kernelHostname, podHostname } from '../../../../../agent/runtime/config/hostname.ts';
import { hostsFileText } from '../../../../../agent/runtime/config/hosts-file.ts';
import type { Pod } from '../../../../../client/types.ts';
import { pod } from '../fixtures.ts';

const LONG = `${'a'.repeat(62)}-b`;

describe('host name', () => {
  test.each([
    ['the pod’s name by default', pod(), 'web', ''],
    ['spec.hostname before it', pod({ hostname: 'db' }), 'db', ''],
    ['with a subdomain there is a domain', pod({ subdomain: 'svc1' }), 'web', 'svc1.demo.svc.cluster.local'],
    ['cut to 63 characters, with no dash or dot at the end', pod({}, { name: LONG }), 'a'.repeat(62), ''],
  ])('%s', (_rule, of, hostname, domain) => {
    expect(podHostname(of, 'cluster.local')).toEqual({ hostname, domain });
  });

  test('hostnameOverride is all of it, with dots and up to 64 characters', () => {
    const spec: Pod['spec'] & { hostnameOverride: string } = {
      ...pod({ hostname: 'db', subdomain: 'svc1' }).spec,
      hostnameOverride: `${'a'.repeat(60)}.com`,
    };
    const of = { ...pod(), spec };
    expect(podHostname(of, 'cluster.local')).toEqual({ hostname: spec.hostnameOverride, domain: '' });
    expect(kernelHostname(of, 'cluster.local')).toBe(spec.hostnameOverride);
  });

  test('setHostnameAsFQDN makes it the full name, as long as the kernel takes it', () => {
    expect(kernelHostname(pod({ subdomain: 's', setHostnameAsFQDN: true }), 'c.local')).toBe('web.s.demo.svc.c.local');
    expect(kernelHostname(pod({ setHostnameAsFQDN: true }), 'c.local')).toBe('web');
    const long = pod({ hostname: 'a'.repeat(50), subdomain: 's', setHostnameAsFQDN: true });
    expect(() => kernelHostname(long, 'c.local')).toThrow(/FQDN a{50}\.s\.demo\.svc\.c\.local is too long \(64 .* 69 /);
  });
});

describe('/etc/hosts', () => {
  const settings = { clusterDomain: 'cluster.local', nodeHosts: '127.0.0.1 localhost\n10.9.9.9 node1\n\n' };

  test('names the pod by every address', () => {
    const text = hostsFileText(pod({ subdomain: 'svc1' }), ['10.0.0.5', 'fd00::5'], settings);
    expect(text.split('\n')).toEqual([
      '# Kubernetes-managed hosts file.',
      '127.0.0.1\tlocalhost',
      '::1\tlocalhost ip6-localhost ip6-loopback',
      'fe00::0\tip6-localnet',
      'fe00::0\tip6-mcastprefix',
      'fe00::1\tip6-allnodes',
      'fe00::2\tip6-allrouters',
      '10.0.0.5\tweb.svc1.demo.svc.cluster.local\tweb',
      'fd00::5\tweb.svc1.demo.svc.cluster.local\tweb',
      '',
    ]);
  });

  test('adds hostAliases at the end', () => {
    const text = hostsFileText(
      pod({ hostAliases: [{ ip: '1.2.3.4', hostnames: ['a', 'b.c'] }] }),
      ['10.0.0.5'],
      settings,
    );
    expect(text.endsWith('10.0.0.5\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb.c\n')).toBe(true);
  });

  test('is the node’s own for a pod on the host network', () => {
    expect(hostsFileText(pod({ hostNetwork: true }), [], settings)).toBe(
      '# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n10.9.9.9 node1\n',
    );
  });
});
