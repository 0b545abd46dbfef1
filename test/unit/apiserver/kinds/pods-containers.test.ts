import { describe, expect, it } from 'vitest';
import { container, type Fields, validate, withContainer } from './pod-support.ts';

describe('containers', () => {
  it.each<[string, Fields, RegExp]>([
    ['there must be one', { containers: [] }, /^spec\.containers: Required value$/],
    ['a name is required', { containers: [container({ name: '' })] }, /^spec\.containers\[0\]\.name: Required value$/],
    [
      'a name is a DNS label',
      { containers: [container({ name: 'Web' })] },
      /^spec\.containers\[0\]\.name: Invalid value: "Web": a lowercase RFC 1123 label/,
    ],
    [
      'a name has no dots',
      { containers: [container({ name: 'a.b' })] },
      /name: Invalid value: "a.b": must not contain dots$/,
    ],
    [
      'names differ',
      { containers: [container(), container()] },
      /^spec\.containers\[1\]\.name: Duplicate value: "web"$/,
    ],
    [
      'names differ from those of init containers',
      { initContainers: [container()] },
      /^spec\.initContainers\[0\]\.name: Duplicate value: "web"$/,
    ],
    ['an image is required', { containers: [{ name: 'web' }] }, /^spec\.containers\[0\]\.image: Required value$/],
    [
      'an image has no blanks around it',
      withContainer({ image: ' a ' }),
      /image: Invalid value: " a ": must not have leading or trailing whitespace$/,
    ],
    [
      'the pull policy is a known one',
      withContainer({ imagePullPolicy: 'Sometimes' }),
      /imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"$/,
    ],
    [
      'the message policy is a known one',
      withContainer({ terminationMessagePolicy: 'Shout' }),
      /terminationMessagePolicy: Unsupported value: "Shout"/,
    ],
    ['a port is required', withContainer({ ports: [{ name: 'http' }] }), /ports\[0\]\.containerPort: Required value$/],
    [
      'a port is in range',
      withContainer({ ports: [{ containerPort: 70000 }] }),
      /ports\[0\]\.containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive$/,
    ],
    [
      'a port name has 15 characters at most',
      withContainer({ ports: [{ containerPort: 1, name: 'a-very-long-name' }] }),
      /ports\[0\]\.name: Invalid value: "a-very-long-name": must be no more than 15/,
    ],
    [
      'a port name has a letter',
      withContainer({ ports: [{ containerPort: 1, name: '80' }] }),
      /must contain at least one letter \(a-z\)$/,
    ],
    [
      'port names differ',
      withContainer({
        ports: [
          { containerPort: 1, name: 'a' },
          { containerPort: 2, name: 'a' },
        ],
      }),
      /ports\[1\]\.name: Duplicate value: "a"$/,
    ],
    [
      'a protocol is a known one',
      withContainer({ ports: [{ containerPort: 1, protocol: 'ICMP' }] }),
      /protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"$/,
    ],
    [
      'host ports differ',
      {
        containers: [
          container({
            ports: [
              { containerPort: 1, hostPort: 9 },
              { containerPort: 2, hostPort: 9 },
            ],
          }),
        ],
      },
      /ports\[1\]\.hostPort: Duplicate value: "TCP\/\/9"$/,
    ],
    [
      'on the host network the host port is the container port',
      { hostNetwork: true, containers: [container({ ports: [{ containerPort: 1, hostPort: 9 }] })] },
      /hostPort: Invalid value: 9: must match `containerPort` when `hostNetwork` is true$/,
    ],
    [
      'an init container has no probes',
      { initContainers: [container({ name: 'i', livenessProbe: { exec: { command: ['x'] } } })] },
      /^spec\.initContainers\[0\]\.livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always$/,
    ],
    [
      'an init container has no hooks',
      { initContainers: [container({ name: 'i', lifecycle: { preStop: { exec: { command: ['x'] } } } })] },
      /initContainers\[0\]\.lifecycle: Forbidden/,
    ],
    [
      'a restart policy is a known one',
      withContainer({ restartPolicy: 'Maybe' }),
      /containers\[0\]\.restartPolicy: Unsupported value: "Maybe"/,
    ],
    [
      'restart rules need a policy',
      withContainer({ restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }] }),
      /restartPolicy: Required value: must specify restartPolicy when restart rules are used$/,
    ],
    [
      'a restart rule names exit codes',
      withContainer({ restartPolicy: 'Never', restartPolicyRules: [{ action: 'Restart' }] }),
      /restartPolicyRules\[0\]\.exitCodes: Required value/,
    ],
    [
      'a pod does not start with ephemeral containers',
      { ephemeralContainers: [container({ name: 'debug' })] },
      /^spec\.ephemeralContainers: Forbidden: cannot be set on create$/,
    ],
    [
      'a resize policy is for cpu or memory',
      withContainer({ resizePolicy: [{ resourceName: 'disk', restartPolicy: 'NotRequired' }] }),
      /resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"$/,
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(validate(spec)).toEqual([expect.stringMatching(expected)]);
  });
});

describe('the environment', () => {
  const env = (variable: Fields): Fields => withContainer({ env: [variable] });
  it.each<[string, Fields, RegExp]>([
    ['a variable has a name', env({ value: 'x' }), /env\[0\]\.name: Required value$/],
    [
      'a name has no equals sign',
      env({ name: 'A=B' }),
      /env\[0\]\.name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII/,
    ],
    [
      'valueFrom names a source',
      env({ name: 'A', valueFrom: {} }),
      /valueFrom: Invalid value: "": must specify one of: `fieldRef`/,
    ],
    [
      'valueFrom and value exclude each other',
      env({ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }),
      /valueFrom: Invalid value: "": may not be specified when `value` is not empty$/,
    ],
    [
      'there is one source',
      env({
        name: 'A',
        valueFrom: { fieldRef: { fieldPath: 'metadata.name' }, secretKeyRef: { name: 'a', key: 'b' } },
      }),
      /may not have more than one field specified at a time$/,
    ],
    [
      'a field reference names a field that variables can show',
      env({ name: 'A', valueFrom: { fieldRef: { fieldPath: 'status.phase' } } }),
      /fieldRef\.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace"/,
    ],
    [
      'a field reference names a field at all',
      env({ name: 'A', valueFrom: { fieldRef: { fieldPath: 'nothing' } } }),
      /fieldPath: Invalid value: "nothing": error converting fieldPath: field label not supported: nothing$/,
    ],
    [
      'a resource reference names a resource',
      env({ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.disk' } } }),
      /resource: Unsupported value: "limits.disk"/,
    ],
    [
      'a divisor of cpu is 1 or 1m',
      env({ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '5' } } }),
      /divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource$/,
    ],
    [
      'a key reference has a key',
      env({ name: 'A', valueFrom: { configMapKeyRef: { name: 'c' } } }),
      /configMapKeyRef\.key: Required value$/,
    ],
    [
      'a key reference has a name',
      env({ name: 'A', valueFrom: { secretKeyRef: { key: 'c' } } }),
      /secretKeyRef\.name: Invalid value: "": a lowercase RFC 1123 subdomain/,
    ],
    [
      'envFrom names a source',
      withContainer({ envFrom: [{ prefix: 'A' }] }),
      /envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`$/,
    ],
    [
      'envFrom has one source',
      withContainer({ envFrom: [{ configMapRef: { name: 'a' }, secretRef: { name: 'b' } }] }),
      /envFrom: Invalid value: "": may not have more than one field/,
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(validate(spec)).toEqual([expect.stringMatching(expected)]);
  });
});

describe('resources', () => {
  const resources = (value: Fields): Fields => withContainer({ resources: value });
  it.each<[string, Fields, RegExp]>([
    [
      'a request is at most the limit',
      resources({ requests: { cpu: '2' }, limits: { cpu: '1' } }),
      /^spec\.containers\[0\]\.resources\.requests: Invalid value: "2": must be less than or equal to cpu limit of 1$/,
    ],
    [
      'a quantity is not negative',
      resources({ requests: { memory: '-1' } }),
      /requests\[memory\]: Invalid value: "-1": must be greater than or equal to 0$/,
    ],
    [
      'a resource is a known one',
      resources({ limits: { disk: '1' } }),
      /limits\[disk\]: Invalid value: "disk": must be a standard resource for containers$/,
    ],
    [
      'a device comes in whole numbers',
      resources({ limits: { 'example.com/gpu': '500m' } }),
      /limits\[example.com\/gpu\]: Invalid value: "500m": must be an integer$/,
    ],
    [
      'a device has a limit',
      resources({ requests: { 'example.com/gpu': '1' } }),
      /resources\.limits: Required value: Limit must be set for non overcommitable resources$/,
    ],
    [
      'a device request equals its limit',
      resources({ requests: { 'example.com/gpu': '1' }, limits: { 'example.com/gpu': '2' } }),
      /must be equal to example.com\/gpu limit of 2$/,
    ],
    [
      'huge pages come with cpu or memory',
      resources({ limits: { 'hugepages-2Mi': '4Mi' } }),
      /resources: Forbidden: HugePages require cpu or memory$/,
    ],
    [
      'a claim is one of the pod',
      resources({ claims: [{ name: 'gpu' }] }),
      /claims\[0\]: Not found: "gpu": must be one of the names in pod.spec.resourceClaims which is empty$/,
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(validate(spec)).toContainEqual(expect.stringMatching(expected));
  });

  it('a device request above its limit is wrong in one way only', () => {
    expect(validate({ resources: { limits: { 'ephemeral-storage': '1' } } })[0]).toMatch(
      /^spec\.resources\.limits\[ephemeral-storage\]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"$/,
    );
  });
});

describe('probes and hooks', () => {
  const probe = (value: Fields, kind = 'livenessProbe'): Fields => withContainer({ [kind]: value });
  const get = { httpGet: { port: 80 } };
  it.each<[string, Fields, RegExp]>([
    ['a probe has a handler', probe({}), /livenessProbe: Required value: must specify a handler type$/],
    [
      'a probe has one handler',
      probe({ ...get, tcpSocket: { port: 1 } }),
      /livenessProbe\.tcpSocket: Forbidden: may not specify more than 1 handler type$/,
    ],
    ['a command is not empty', probe({ exec: {} }), /exec\.command: Required value$/],
    [
      'a port is in range',
      probe({ httpGet: { port: 0 } }),
      /httpGet\.port: Invalid value: 0: must be between 1 and 65535, inclusive$/,
    ],
    [
      'a named port is a port name',
      probe({ tcpSocket: { port: 'not_a_name' } }),
      /tcpSocket\.port: Invalid value: "not_a_name": must contain only alpha-numeric/,
    ],
    [
      'a scheme is HTTP or HTTPS',
      probe({ httpGet: { port: 1, scheme: 'FTP' } }),
      /scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"$/,
    ],
    [
      'a header name is one',
      probe({ httpGet: { port: 1, httpHeaders: [{ name: 'X Y', value: '' }] } }),
      /httpHeaders: Invalid value: "X Y": a valid HTTP header must consist of/,
    ],
    [
      'figures are not negative',
      probe({ ...get, periodSeconds: -1 }),
      /periodSeconds: Invalid value: -1: must be greater than or equal to 0$/,
    ],
    [
      'liveness succeeds at once',
      probe({ ...get, successThreshold: 2 }),
      /livenessProbe\.successThreshold: Invalid value: 2: must be 1$/,
    ],
    [
      'a grace period of a probe is positive',
      probe({ ...get, terminationGracePeriodSeconds: 0 }),
      /terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0$/,
    ],
    [
      'readiness has no grace period',
      probe({ ...get, terminationGracePeriodSeconds: 5 }, 'readinessProbe'),
      /readinessProbe\.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes$/,
    ],
    [
      'a hook has a handler',
      withContainer({ lifecycle: { preStop: {} } }),
      /lifecycle\.preStop: Required value: must specify a handler type$/,
    ],
    [
      'a sleep fits into the grace period',
      withContainer({ lifecycle: { preStop: { sleep: { seconds: 31 } } } }),
      /preStop\.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds \(30\)$/,
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(validate(spec)).toEqual([expect.stringMatching(expected)]);
  });
});
