// CRI messages as bytes, and recordings made of them, for the tests of what reads recordings.

import { type EndFields, type Piece, printRecord } from '../../../../cli/tap/format.ts';
import { frameMessage } from '../../../../cli/tap/grpc-messages.ts';
import { type RecordedCall, type RecordingInfo, RecordingReader } from '../../../../cli/tap/recording.ts';
import { loadProto } from '../../../../proto/load.ts';

const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
const RUNTIME = RuntimeService.service;

export const path = (method: string): string => `/runtime.v1.RuntimeService/${method}`;

export const METHODS = {
  RunPodSandbox: RUNTIME.RunPodSandbox,
  CreateContainer: RUNTIME.CreateContainer,
  StartContainer: RUNTIME.StartContainer,
  StopContainer: RUNTIME.StopContainer,
  RemoveContainer: RUNTIME.RemoveContainer,
  StopPodSandbox: RUNTIME.StopPodSandbox,
  RemovePodSandbox: RUNTIME.RemovePodSandbox,
  ListPodSandbox: RUNTIME.ListPodSandbox,
  ListContainers: RUNTIME.ListContainers,
  ContainerStatus: RUNTIME.ContainerStatus,
  ExecSync: RUNTIME.ExecSync,
  Exec: RUNTIME.Exec,
  Version: RUNTIME.Version,
  GetContainerEvents: RUNTIME.GetContainerEvents,
  PullImage: ImageService.service.PullImage,
};
export type MethodName = keyof typeof METHODS;

interface Codec {
  readonly requestSerialize: (value: never) => Buffer;
  readonly responseSerialize: (value: never) => Buffer;
}

/** The serializers take what the generated types say; here a table of many methods gives them plain objects. */
function codec(method: MethodName): { request(value: object): Buffer; response(value: object): Buffer } {
  const found: Codec = METHODS[method];
  return {
    request: (value) => Reflect.apply(found.requestSerialize, undefined, [value]),
    response: (value) => Reflect.apply(found.responseSerialize, undefined, [value]),
  };
}

export const requestBytes = (method: MethodName, value: object): Buffer => codec(method).request(value);
export const responseBytes = (method: MethodName, value: object): Buffer => codec(method).response(value);

export interface TestCall {
  readonly method: MethodName;
  readonly at: number;
  readonly request?: object;
  /** Absent for a call that fails. */
  readonly response?: object | readonly (readonly [at: number, message: object])[];
  readonly took?: number;
  readonly end?: Partial<EndFields> | 'open';
}

export const HEAD = printRecord({
  record: 'recording',
  version: 1,
  start: '2026-01-02T03:04:05.000Z',
  to: '/run/runtime.sock',
  redacted: false,
});

function lineOf(call: TestCall, id: number): string {
  const { method, at, request = {}, response, took = 1, end } = call;
  const messages: readonly (readonly [number, object])[] =
    response === undefined ? [] : isTimed(response) ? response : [[at + took, response]];
  const piece = (moment: number, bytes: Buffer): Piece => [moment, frameMessage(bytes).toString('base64')];
  return printRecord({
    record: 'call',
    call: id,
    connection: 1,
    at,
    method: METHODS[method].path,
    metadata: [],
    request: [piece(at, requestBytes(method, request))],
    response: messages.map(([moment, message]) => piece(moment, responseBytes(method, message))),
    ...(end === 'open' ? {} : { end: { at: at + took, status: response === undefined ? 2 : 0, ...end } }),
  });
}

function isTimed(
  response: object | readonly (readonly [at: number, message: object])[],
): response is readonly (readonly [at: number, message: object])[] {
  return Array.isArray(response);
}

export function recordingLines(calls: readonly TestCall[]): string[] {
  return [HEAD, ...calls.map((call, index) => lineOf(call, index + 1)), printRecord({ record: 'end', at: 10_000 })];
}

export function recordingOf(calls: readonly TestCall[]): {
  readonly info: RecordingInfo;
  readonly calls: readonly RecordedCall[];
} {
  return readLines(recordingLines(calls));
}

export function readLines(lines: readonly string[]): {
  readonly info: RecordingInfo;
  readonly calls: readonly RecordedCall[];
} {
  const found: RecordedCall[] = [];
  const reader = new RecordingReader((call) => found.push(call));
  for (const line of lines) reader.push(line.replace(/\n$/, ''));
  const info = reader.finish();
  return { info, calls: found.sort((a, b) => a.begin - b.begin || a.id - b.id) };
}

export const id = (digit: string): string => digit.repeat(64);
export const uid = (digit: string): string => `${digit.repeat(8)}-0000-4000-8000-${digit.repeat(12)}`;

export interface PodIds {
  readonly uid: string;
  readonly sandbox: string;
  readonly container: string;
}

export const IDS_A: PodIds = { uid: uid('1'), sandbox: id('a'), container: id('b') };
export const IDS_B: PodIds = { uid: uid('2'), sandbox: id('c'), container: id('d') };

export const sandboxConfig = ({ uid: podUid }: PodIds): object => ({
  metadata: { name: 'web', namespace: 'demo', uid: podUid, attempt: 0 },
  log_directory: `/var/log/pods/demo_web_${podUid}`,
  labels: { 'io.kubernetes.pod.name': 'web', 'io.kubernetes.pod.namespace': 'demo', 'io.kubernetes.pod.uid': podUid },
});

export const containerConfig = (more: object = {}): object => ({
  metadata: { name: 'main', attempt: 0 },
  image: { image: 'busybox:stable' },
  envs: [
    { key: 'A', value: '1' },
    { key: 'B', value: '2' },
  ],
  ...more,
});

/** A pod's whole life, 100 ms a call from `start` on. */
export function podLife(ids: PodIds, start = 1000, container: object = {}): TestCall[] {
  const calls: Omit<TestCall, 'at'>[] = [
    { method: 'ListPodSandbox', response: { items: [] } },
    { method: 'RunPodSandbox', request: { config: sandboxConfig(ids) }, response: { pod_sandbox_id: ids.sandbox } },
    {
      method: 'CreateContainer',
      request: { pod_sandbox_id: ids.sandbox, config: containerConfig(container), sandbox_config: sandboxConfig(ids) },
      response: { container_id: ids.container },
    },
    { method: 'StartContainer', request: { container_id: ids.container }, response: {} },
    {
      method: 'ListPodSandbox',
      response: {
        items: [
          {
            id: ids.sandbox,
            metadata: { name: 'web', namespace: 'demo', uid: ids.uid },
            state: 'SANDBOX_READY',
            labels: { 'io.kubernetes.pod.uid': ids.uid },
          },
        ],
      },
    },
    { method: 'ExecSync', request: { container_id: ids.container, cmd: ['true'] }, response: { exit_code: 0 } },
    { method: 'StopContainer', request: { container_id: ids.container, timeout: 30 }, response: {} },
    { method: 'RemoveContainer', request: { container_id: ids.container }, response: {} },
    { method: 'StopPodSandbox', request: { pod_sandbox_id: ids.sandbox }, response: {} },
    { method: 'RemovePodSandbox', request: { pod_sandbox_id: ids.sandbox }, response: {} },
    { method: 'ListPodSandbox', response: { items: [] } },
  ];
  return calls.map((call, index) => ({ ...call, at: start + 100 * index }));
}
