// The checkpoints of pod resources in the kubelet's format, in files as kubelets wrote them.
//
// kubelet-files/<minor>/ was written by k8s.io/kubernetes/pkg/kubelet/allocation/state (NewStateCheckpoint,
// SetPodResourceInfo, SetContainerResources) of v1.33.5, v1.34.1 and v1.35.0: a pod whose resize of `web` has been
// allocated and not actuated, and a pod without resources.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type CheckpointTexts,
  checkpointChecksum,
  parseCheckpoints,
  printCheckpoint,
} from '../../../../../agent/pods/resize/checkpoint.ts';

const WEB = '11111111-2222-4333-8444-555555555555';
const JOB = 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee';

function kubeletFile(minor: string, name: string): string {
  return readFileSync(new URL(`kubelet-files/${minor}/${name}`, import.meta.url), 'utf8');
}

const kubeletFiles = (minor: string): CheckpointTexts => ({
  allocated: kubeletFile(minor, 'allocated_pods_state'),
  actuated: kubeletFile(minor, 'actuated_pods_state'),
});

const BIG = {
  limits: { cpu: '1500m', 'hugepages-2Mi': '4Mi', memory: '128Mi' },
  requests: { cpu: '200m', memory: '64Mi' },
};
const SMALL = {
  limits: { cpu: '1', 'hugepages-2Mi': '4Mi', memory: '64Mi' },
  requests: { cpu: '100m', memory: '32Mi' },
};
const PROXY = { requests: { cpu: '10m' }, claims: [{ name: 'gpu', request: 'one' }] };

describe.each(['1.33', '1.34', '1.35'])('files of a kubelet %s', (minor) => {
  it('have the allocated and the actuated resources', () => {
    expect(parseCheckpoints(kubeletFiles(minor))).toEqual(
      new Map([
        [
          WEB,
          {
            allocated: { web: BIG, proxy: PROXY },
            actuated: { web: { id: undefined, resources: SMALL }, proxy: { id: undefined, resources: PROXY } },
          },
        ],
        // The resources of a plain init container are never resized.
        [JOB, { allocated: { job: {} }, actuated: { job: { id: undefined, resources: {} } } }],
      ]),
    );
  });

  it('with one character changed are refused, and the file is named', () => {
    const { allocated = '', actuated = '' } = kubeletFiles(minor);
    const changed = (text: string) => text.replace('64Mi', '65Mi');
    expect(() => parseCheckpoints({ allocated: changed(allocated), actuated })).toThrow(
      /^allocated_pods_state: checkpoint is corrupted/,
    );
    expect(() => parseCheckpoints({ allocated, actuated: changed(actuated) })).toThrow(
      /^actuated_pods_state: checkpoint is corrupted/,
    );
  });
});

describe('the written file', () => {
  it.each(['1.33', '1.34'])('is what a kubelet %s writes, byte for byte', (minor) => {
    const allocated = new Map([
      [WEB, { proxy: PROXY, web: BIG }],
      [JOB, { job: {} }],
    ]);
    const written = printCheckpoint(allocated);
    expect(written).toBe(kubeletFile(minor, 'allocated_pods_state'));
  });

  it('has a checksum over the bytes, whatever they are', () => {
    // Computed by k8s.io/kubernetes/pkg/kubelet/checkpointmanager/checksum of v1.34.1.
    expect(checkpointChecksum('')).toBe(441_364_273);
    expect(checkpointChecksum('{"entries":{"ü<&>":{}}}\n')).toBe(4_227_567_898);
  });

  it('is read back', () => {
    const pods = new Map([['u', { web: { requests: { cpu: '2' } }, constructor: {} }]]);
    const text = printCheckpoint(pods);
    expect(parseCheckpoints({ allocated: text, actuated: undefined })).toEqual(
      new Map([['u', { allocated: pods.get('u'), actuated: {} }]]),
    );
  });

  it('of no pod is read as no pod', () => {
    const empty = printCheckpoint(new Map());
    expect(parseCheckpoints({ allocated: empty, actuated: empty })).toEqual(new Map());
    const none = JSON.stringify({ data: '{}', checksum: checkpointChecksum('{}') });
    expect(parseCheckpoints({ allocated: none, actuated: none })).toEqual(new Map());
  });
});

describe('a file in the former format', () => {
  it('is read with the ids that it has', () => {
    const pod = { allocated: { web: BIG }, actual: { web: { id: 'c1', resources: SMALL } }, resizing: true };
    const allocated = `${JSON.stringify({ version: 1, pods: { u: pod } })}\n`;
    expect(parseCheckpoints({ allocated, actuated: undefined })).toEqual(
      new Map([['u', { allocated: { web: BIG }, actuated: { web: { id: 'c1', resources: SMALL } } }]]),
    );
  });

  it.each([
    ['that is cut off', '{"version":1,"pods":{"u"'],
    ['of another version', '{"version":7,"pods":{}}'],
    ['with a pod that is none', '{"version":1,"pods":{"u":3}}'],
    ['with an instance without an id', '{"version":1,"pods":{"u":{"allocated":{},"actual":{"web":{}}}}}'],
    ['that is neither format', '{"pods":{}}'],
    ['that is no object', '[]'],
  ])('%s is refused with a reason', (_, allocated) => {
    expect(() => parseCheckpoints({ allocated, actuated: undefined })).toThrow(/^allocated_pods_state: /);
  });
});
