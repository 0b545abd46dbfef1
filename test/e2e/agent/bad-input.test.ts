// What bad input gets: manifests that are refused, images that are not there, a CNI chain that fails or is missing.

import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import {
  apply,
  container,
  deletePods,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  gone,
  nodeWhen,
  nothingLeft,
  podResources,
  podSeen,
  podWhen,
  prints,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;
let before: readonly string[];

beforeAll(async () => {
  lab = await startLab();
  before = await podResources(lab);
});
afterAll(() => lab?.stop());

test('an image that cannot be had: ErrImagePull, then ImagePullBackOff, each with the words of the runtime', async () => {
  const fails = ({ status }: Pod): boolean => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImagePull';
  const pulling = await podSeen(lab, 'no-image', 'ErrImagePull', fails);
  await apply(lab, shellPod('no-image', 'true', {}, { image: 'registry.invalid/none:1' }));
  const failing = await pulling.seen;
  expect(container(failing).state?.waiting?.message).toMatch(
    /failed to pull and unpack image "registry.invalid\/none:1"/,
  );
  const backing = await podWhen(
    lab,
    'no-image',
    'ImagePullBackOff',
    (pod) => container(pod).state?.waiting?.reason === 'ImagePullBackOff',
  );
  expect(container(backing).state?.waiting?.message).toMatch(/^Back-off pulling image "registry.invalid\/none:1"/);
  expect(container(backing).state?.waiting?.message).toContain('registry.invalid');
  expect(backing.status?.phase).toBe('Pending');
  await eventWhen(lab, 'no-image', 'Pulling', /^Pulling image "registry.invalid\/none:1"$/);
  await eventWhen(lab, 'no-image', 'Failed', /^Failed to pull image "registry.invalid\/none:1": .*registry\.invalid/);
  await eventWhen(lab, 'no-image', 'Failed', /^Error: ErrImagePull$/);
  await eventWhen(lab, 'no-image', 'BackOff', /^Back-off pulling image "registry.invalid\/none:1"/);
  await eventWhen(lab, 'no-image', 'Failed', /^Error: ImagePullBackOff$/);
  expect(await lab.kubectl('get', 'pod', 'no-image', '--no-headers')).toMatch(
    /^no-image\s+0\/1\s+(ImagePullBackOff|ErrImagePull)/,
  );
  await deletePods(lab, ['no-image']);
  await nothingLeft(lab, before);
});

test('an image name that is none is refused by name, without a call of the runtime', async () => {
  await apply(lab, shellPod('odd-image', 'true', {}, { image: 'Not/A/Name:?' }));
  const pod = await podWhen(
    lab,
    'odd-image',
    'InvalidImageName',
    (each) => container(each).state?.waiting?.reason === 'InvalidImageName',
  );
  expect(container(pod).state?.waiting?.message).toContain('Not/A/Name:?');
  await deletePods(lab, ['odd-image']);
});

test('imagePullPolicy Never with an image that is not here: ErrImageNeverPull', async () => {
  await apply(lab, shellPod('never', 'true', {}, { image: 'absent:1', imagePullPolicy: 'Never' }));
  const pod = await podWhen(
    lab,
    'never',
    'ErrImageNeverPull',
    (each) => container(each).state?.waiting?.reason === 'ErrImageNeverPull',
  );
  expect(container(pod).state?.waiting?.message).toBe(
    'Container image "absent:1" is not present with pull policy of Never',
  );
  await deletePods(lab, ['never']);
});

test('a command that is not in the image: the container fails with the words of the runtime', async () => {
  await apply(lab, shellPod('no-command', 'true', {}, { command: ['/no/such/program'] }));
  const seen = await podWhen(lab, 'no-command', 'failing to start', (pod) => {
    const { state, lastState } = container(pod);
    return (state?.terminated ?? lastState?.terminated) !== undefined;
  });
  const { state, lastState } = container(seen);
  const terminated = state?.terminated ?? lastState?.terminated;
  expect(terminated).toMatchObject({ exitCode: 128, reason: 'StartError' });
  expect(terminated?.message).toContain('/no/such/program');
  await eventWhen(lab, 'no-command', 'Failed', /^Error: failed to (create|start) .*\/no\/such\/program/s);
  await deletePods(lab, ['no-command']);
});

test('a secret that is not there: CreateContainerConfigError names it, and the pod starts once it is', async () => {
  const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'later', key: 'word' } } }];
  await apply(lab, shellPod('wants-secret', `echo $WORD; ${FOREVER}`, {}, { env }));
  const pod = await podWhen(
    lab,
    'wants-secret',
    'CreateContainerConfigError',
    (each) => container(each).state?.waiting?.reason === 'CreateContainerConfigError',
  );
  expect(container(pod).state?.waiting?.message).toBe('secret "later" not found');
  await lab.kubectl('create', 'secret', 'generic', 'later', '--from-literal=word=found');
  await ready(lab, 'wants-secret');
  await prints(lab, 'found\n', 'logs', 'wants-secret');
  await deletePods(lab, ['wants-secret']);
});

test('what is not done is refused by name: a device claim, a variable from a file, a certificate in a volume', async () => {
  const { nodeName } = lab.lab.state;
  const claims = { resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }], nodeName };
  const env = [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'files', path: 'a.env', key: 'A' } } }];
  const files = { volumes: [{ name: 'files', emptyDir: {} }] };
  const source: object = { podCertificate: { signerName: 'example.org/signer', keyType: 'ED25519', keyPath: 'key' } };
  const certificate = { volumes: [{ name: 'cert', projected: { sources: [source] } }] };
  // Features that are off in kube-apiserver 1.34, which drops the fields. What is left of the variable is not valid; what is left of the
  // volume is empty. The agent's own refusal of such a volume is in its tables.
  const file = shellPod('wants-file', 'true', files, { env, volumeMounts: [{ name: 'files', mountPath: '/files' }] });
  const { code, stderr } = await lab.tryKubectl(['apply', '-f', '-'], { stdin: JSON.stringify(file) });
  expect(code).toBe(1);
  expect(stderr).toContain('spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of');
  await apply(
    lab,
    shellPod('wants-gpu', 'true', claims),
    shellPod('wants-cert', 'true', certificate, { volumeMounts: [{ name: 'cert', mountPath: '/cert' }] }),
  );
  const refused = await podWhen(lab, 'wants-gpu', 'Failed', ({ status }) => status?.phase === 'Failed');
  expect(refused.status).toMatchObject({
    reason: 'PodFeatureUnsupported',
    message: 'Pod was rejected: Pod requires node features that are not available: DynamicResourceAllocation',
  });
  expect(refused.status?.containerStatuses?.[0]?.state?.running).toBeUndefined();
  const stored = await getPod(lab, 'wants-cert');
  expect(stored.spec.volumes?.find(({ name }) => name === 'cert')?.projected?.sources).toEqual([{}]);
  await deletePods(lab, ['wants-gpu', 'wants-cert']);
});

test('a manifest with errors is refused with the path of each field, and nothing is stored', async () => {
  const manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'wrong', namespace: 'default' },
    spec: {
      restartPolicy: 'Sometimes',
      containers: [
        { name: 'UPPER', image: 'busybox:stable', ports: [{ containerPort: 99_999 }] },
        { name: 'empty', image: '', resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } },
      ],
    },
  };
  const result = await lab.tryKubectl(['apply', '--validate=false', '-f', '-'], { stdin: JSON.stringify(manifest) });
  expect(result.code).toBe(1);
  for (const path of [
    'spec.restartPolicy',
    'spec.containers[0].name',
    'spec.containers[0].ports[0].containerPort',
    'spec.containers[1].image',
    'spec.containers[1].resources.requests',
  ]) {
    expect(result.stderr).toContain(path);
  }
  expect((await lab.tryKubectl(['get', 'pod', 'wrong'])).stderr).toContain('NotFound');
});

test('a failing CNI plugin: FailedCreatePodSandBox with its own words, nothing leaked, and the pod runs once it is mended', async () => {
  const { cni } = lab.paths;
  const good = await readFile(cni.conflist, 'utf8');
  const start = await podResources(lab);
  // Plugins are looked for in the conflist's bin directory, which is the machine's: the chain fails in a plugin of ours
  // after bridge and host-local have done their part, so there is something to be given back.
  const plugins = JSON.parse(good);
  plugins.plugins.push({ type: 'bandwidth', capabilities: {}, ingressRate: 1 });
  // In one go, as a CNI's installer does: half a file is another fault.
  await writeFileAtomic(cni.conflist, JSON.stringify(plugins));
  await apply(lab, shellPod('no-network', FOREVER));
  const event = await eventWhen(lab, 'no-network', 'FailedCreatePodSandBox');
  expect(event.message).toMatch(
    /^Failed to create pod sandbox: rpc error: code = \w+ desc = failed to setup network for sandbox/,
  );
  expect(event.message).toMatch(/plugin type="bandwidth".*burst must also be set/s);
  const pod = await podWhen(lab, 'no-network', 'still ContainerCreating', (each) => each.status?.phase === 'Pending');
  expect(container(pod).state?.waiting?.reason).toBe('ContainerCreating');
  // Between two attempts nothing is allocated: each attempt releases what it took.
  await eventually('address and link to be given back', async () => {
    const retained = (await podResources(lab)).filter((thing) => /^(lease|link) /.test(thing));
    return retained.length === 0 ? true : undefined;
  });
  await eventually('one network namespace at most', async () =>
    (await podResources(lab)).filter((thing) => thing.includes('/netns/')).length <= 1 ? true : undefined,
  );
  // A pod that never had a network can be deleted all the same, while the chain is still broken.
  await apply(lab, shellPod('hopeless', FOREVER));
  await eventWhen(lab, 'hopeless', 'FailedCreatePodSandBox');
  await deletePods(lab, ['hopeless']);
  await writeFileAtomic(cni.conflist, good);
  await ready(lab, 'no-network');
  await eventually('one address and one link', async () => {
    const retained = (await podResources(lab)).filter((thing) => /^(lease|link) /.test(thing));
    return retained.length === 2 ? true : undefined;
  });
  await deletePods(lab, ['no-network']);
  await gone(lab, 'no-network');
  await nothingLeft(lab, start);
});

test('a missing or broken conflist makes the node NotReady with the reason; it is Ready again by itself', async () => {
  const { cni } = lab.paths;
  const aside = join(lab.root, 'aside.conflist');
  await nodeWhen(lab, 'Ready', (shown) => shown.status === 'True');
  await rename(cni.conflist, aside);
  // A slow machine may have made it NotReady for another reason before.
  const missing = await nodeWhen(
    lab,
    'NotReady for the missing file',
    (shown) => shown.status === 'False' && shown.message?.includes('NetworkPluginNotReady') === true,
  );
  expect(missing.reason).toBe('KubeletNotReady');
  expect(missing.message).toContain(cni.confDir);
  await writeFile(cni.conflist, '{ "cniVersion": "1.0.0", "name": ');
  const broken = await nodeWhen(
    lab,
    'NotReady for the broken file',
    (shown) => shown.message?.includes('10-nodelet') === true,
  );
  expect(broken).toMatchObject({ status: 'False', reason: 'KubeletNotReady' });
  expect(broken.message).toContain('NetworkPluginNotReady');
  await rename(aside, cni.conflist);
  await nodeWhen(lab, 'Ready again', (shown) => shown.status === 'True');
  await apply(lab, shellPod('after', FOREVER));
  await ready(lab, 'after');
  await deletePods(lab, ['after']);
  await eventWhen(lab, lab.nodeName, 'NodeNotReady');
});
