import { describe, expect, it } from 'vitest';
import { decodeRequest, encodeAnswer, errorAnswer, parseInvocation, podOf } from '../../../cni/request.ts';
import { CniError } from '../../../cni/types.ts';

const encode = (env: string, stdin: string): Buffer =>
  Buffer.from(`nodelet-cni 1 ${Buffer.byteLength(env)} ${Buffer.byteLength(stdin)}\n${env}${stdin}`);

describe("the shim's request", () => {
  const whole = encode('CNI_COMMAND=ADD\0CNI_ARGS=A=1;B=2\0CNI_EMPTY=\0', '{"name":"ü"}');
  it('is read whole, with "=" and multi-byte characters in it', () => {
    expect(decodeRequest(whole)).toEqual({
      env: { CNI_COMMAND: 'ADD', CNI_ARGS: 'A=1;B=2', CNI_EMPTY: '' },
      stdin: '{"name":"ü"}',
    });
  });
  it('is waited for, however it is cut', () => {
    for (let length = 0; length < whole.length; length++)
      expect(decodeRequest(whole.subarray(0, length))).toBeUndefined();
  });
  it.each([
    ['GET / HTTP/1.1\r\n\r\n'],
    ['nodelet-cni 2 0 0\n'],
    ['nodelet-cni 1 999999999999 0\n'],
    ['nodelet-cni 1 0 99999999\n'],
    ['x'.repeat(60)],
  ])('is refused when it is not one: %j', (text) => {
    expect(() => decodeRequest(Buffer.from(text))).toThrow(CniError);
  });
});

it('an answer says its own length in bytes', () => {
  expect(encodeAnswer({ code: 0, stdout: 'ü' }).toString()).toBe('0 2\nü');
});

it('an error is answered in the form of the specification, with plugin and command in the message', () => {
  const error = new CniError({ code: 101, msg: 'no', details: 'why', plugin: 'bridge', command: 'ADD' });
  const { code, stdout } = errorAnswer(error, '0.4.0');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({
    cniVersion: '0.4.0',
    code: 101,
    msg: 'plugin type="bridge" failed (add): no',
    details: 'why',
  });
  expect(JSON.parse(errorAnswer(new Error('boom')).stdout)).toMatchObject({ code: 999, msg: 'boom' });
});

describe('an invocation', () => {
  const env = { CNI_COMMAND: 'ADD', CNI_CONTAINERID: 'c', CNI_NETNS: '/n', CNI_IFNAME: 'eth0', CNI_ARGS: 'K=V' };
  it('takes the capability arguments from runtimeConfig, in the spelling of the conventions', () => {
    const runtimeConfig = {
      portMappings: [{ HostPort: 80, ContainerPort: 8080, Protocol: 'tcp', HostIP: '' }],
      bandwidth: { IngressRate: 1 },
      dns: { servers: ['1.1.1.1'] },
      'io.kubernetes.cri.pod-annotations': { Key: 'V' },
      mac: '00:11:22:33:44:55',
    };
    expect(parseInvocation({ env, stdin: JSON.stringify({ cniVersion: '1.0.0', runtimeConfig }) })).toEqual({
      command: 'ADD',
      version: '1.0.0',
      attachment: {
        containerId: 'c',
        netns: '/n',
        ifName: 'eth0',
        args: 'K=V',
        capabilityArgs: {
          portMappings: [{ hostPort: 80, containerPort: 8080, protocol: 'tcp', hostIP: '' }],
          bandwidth: { ingressRate: 1 },
          dns: { servers: ['1.1.1.1'] },
          'io.kubernetes.cri.pod-annotations': { Key: 'V' },
          mac: '00:11:22:33:44:55',
        },
      },
    });
  });
  it.each<[Record<string, string>, string, number, string]>([
    [{}, '{}', 4, 'CNI_COMMAND is missing'],
    [{ CNI_COMMAND: 'PING' }, '{}', 4, 'unknown CNI_COMMAND: PING'],
    [{ ...env, CNI_NETNS: '' }, '{}', 4, 'CNI_NETNS is missing'],
    [env, '{', 6, 'standard input is not a JSON object'],
    [env, '[]', 6, 'standard input is not a JSON object'],
    [env, '{"cniVersion":"5.0.0"}', 1, 'version "5.0.0" is not supported'],
    [env, '{"cniVersion":1}', 1, 'version 1 is not supported'],
  ])('of %j with %s is refused with code %i', (variables, stdin, code, message) => {
    let failure: unknown;
    try {
      parseInvocation({ env: variables, stdin });
    } catch (error) {
      failure = error;
    }
    expect(failure).toMatchObject({ code });
    expect(String(failure)).toContain(message);
  });
  it('of DEL needs no network namespace', () => {
    expect(parseInvocation({ env: { ...env, CNI_COMMAND: 'DEL', CNI_NETNS: '' }, stdin: '' })).toMatchObject({
      command: 'DEL',
      version: '0.1.0',
    });
  });
});

it('the pod is read from CNI_ARGS, where it is named there', () => {
  expect(podOf('IgnoreUnknown=1;K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_UID=c')).toEqual({
    namespace: 'a',
    name: 'b',
    uid: 'c',
  });
  expect(podOf('')).toBeUndefined();
  expect(podOf('K8S_POD_NAME=b')).toBeUndefined();
});
