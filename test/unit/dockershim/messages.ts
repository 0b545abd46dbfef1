// Messages of CRI with every field, as a server reads them, for tables that name only what they are about.

import type { DockerFacts } from '../../../dockershim/translate/facts.ts';
import type { ContainerConfig__Output } from '../../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig__Output } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import { loadProto } from '../../../proto/load.ts';

const { RuntimeService } = loadProto('cri').runtime.v1;

/** Over the wire and back. */
export function sandboxConfig(config: object): PodSandboxConfig__Output {
  const { requestSerialize, requestDeserialize } = RuntimeService.service.RunPodSandbox;
  const read = requestDeserialize(requestSerialize({ config: { metadata: POD, ...config } }));
  if (read.config === null) throw new Error('the message has no config');
  return read.config;
}

export const POD = { name: 'web', namespace: 'demo', uid: 'u1', attempt: 2 };

export function containerConfig(config: object): ContainerConfig__Output {
  const { requestSerialize, requestDeserialize } = RuntimeService.service.CreateContainer;
  const whole = { metadata: { name: 'main', attempt: 1 }, image: { image: 'busybox' }, ...config };
  const read = requestDeserialize(requestSerialize({ config: whole }));
  if (read.config === null) throw new Error('the message has no config');
  return read.config;
}

export const FACTS: DockerFacts = {
  apiMinor: 41,
  version: '20.10.24',
  cgroupVersion: 1,
  cgroupDriver: 'cgroupfs',
  security: new Set(['seccomp']),
  apparmorUnloadable: false,
  runtimes: new Set(['runc', 'kata']),
  defaultRuntime: 'runc',
  rootDir: '/var/lib/docker',
  minOomScoreAdj: -1000,
};
