import { describe, expect, test } from 'vitest';
import { ConfigTypeError, jsonName, messageFromConfig, messageToJson } from '../../../../cli/crictl/protojson.ts';

test.each([
  ['runtime_handler', 'runtimeHandler'],
  ['id', 'id'],
  ['memory_limit_in_bytes', 'memoryLimitInBytes'],
  ['host_port_2', 'hostPort2'],
])('%s is %s', (name, json) => {
  expect(jsonName(name)).toBe(json);
});

describe('a message as JSON', () => {
  test('has every scalar, list and map, by their defaults when they are empty, and no message that is not set', () => {
    expect(messageToJson('ContainerStatus', {})).toEqual({
      id: '',
      state: 'CONTAINER_CREATED',
      createdAt: '0',
      startedAt: '0',
      finishedAt: '0',
      exitCode: 0,
      imageRef: '',
      reason: '',
      message: '',
      labels: {},
      annotations: {},
      mounts: [],
      logPath: '',
      imageId: '',
      stopSignal: 'RUNTIME_DEFAULT',
    });
  });

  test('keeps the order of the .proto file, and sorts maps', () => {
    const json = messageToJson('Container', {
      labels: { b: '2', a: '1' },
      id: 'x',
      metadata: { name: 'n', attempt: 2 },
    });
    expect(JSON.stringify(json)).toMatch(
      /^\{"id":"x","podSandboxId":"","metadata":\{"name":"n","attempt":2\},"imageRef":"".*"labels":\{"a":"1","b":"2"\}/,
    );
  });

  test('64-bit numbers are strings, bytes base64, wrappers objects', () => {
    expect(messageToJson('ExecSyncResponse', { stdout: Buffer.from('hi'), exit_code: 3 })).toEqual({
      stdout: 'aGk=',
      stderr: '',
      exitCode: 3,
    });
    expect(
      messageToJson('MemoryUsage', { timestamp: '12', working_set_bytes: { value: '18446744073709551615' } }),
    ).toEqual({
      timestamp: '12',
      workingSetBytes: { value: '18446744073709551615' },
    });
  });

  test('a message that CRI does not have is a mistake of ours', () => {
    expect(() => messageToJson('constructor', {})).toThrow('CRI has no constructor');
  });
});

describe('a configuration', () => {
  test('is read by the .proto file’s names, with texts where YAML has numbers', () => {
    const read = messageFromConfig('PodSandboxConfig', {
      metadata: { name: 'a', uid: 7, attempt: 1 },
      port_mappings: [{ protocol: 1, container_port: 80 }, { protocol: 'SCTP' }],
      labels: { a: 1, b: true },
      linux: { security_context: { namespace_options: { network: 2 }, privileged: true }, sysctls: null },
    });
    expect(read).toEqual({
      message: {
        metadata: { name: 'a', uid: '7', attempt: 1 },
        port_mappings: [{ protocol: 'UDP', container_port: 80 }, { protocol: 'SCTP' }],
        labels: { a: '1', b: 'true' },
        linux: { security_context: { namespace_options: { network: 'NODE' }, privileged: true } },
      },
      unknown: [],
    });
  });

  test('names what CRI does not have', () => {
    const { message, unknown } = messageFromConfig('ContainerConfig', {
      logPath: 'x',
      Log_Path: 'y',
      mounts: [{ nothing: 1 }],
      __proto__x: 1,
    });
    expect(message).toEqual({ log_path: 'y', mounts: [{}] });
    expect(unknown).toEqual(['logPath', 'mounts[0].nothing', '__proto__x']);
  });

  test.each([
    [{ stdin: 'yes' }, 'stdin: "yes" is no bool'],
    [{ command: 'top' }, 'command: "top" is no list'],
    [{ labels: ['a'] }, 'labels: ["a"] is no map'],
    [{ linux: { resources: { cpu_shares: 1.5 } } }, 'linux.resources.cpu_shares: 1.5 is no int64'],
    [{ metadata: { attempt: -1 } }, 'metadata.attempt: -1 is no uint32'],
    [{ mounts: [{ propagation: 9 }] }, 'mounts[0].propagation: 9 is no MountPropagation'],
    ['text', 'ContainerConfig: "text" is no ContainerConfig object'],
  ])('%j is refused', (value, message) => {
    expect(() => messageFromConfig('ContainerConfig', value)).toThrow(message);
  });
});

test('a wrong type is an error of its own class', () => {
  expect(() => messageFromConfig('ContainerConfig', { tty: 1 })).toThrow(ConfigTypeError);
});
