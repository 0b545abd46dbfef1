// Static pods of a real agent in a lab: a directory of manifests, mirror pods as kubectl shows them, and the node's own list
// on pods. The full scan of the directory is an hour away: changes are found by inotify.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Node, Pod, Stored } from '../../../client/types.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import {
  agentLog,
  apply,
  container,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  gone,
  nothingLeft,
  podResources,
  podWhen,
  prints,
  ready,
  shellPod,
} from '../agent/harness.ts';
import { answerFor } from '../explain/answers.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import { freePort } from '../support/ports.ts';

const NODE = 'static-node';
let lab: TestLab;
let manifests: string;
let before: readonly string[];

beforeAll(async () => {
  manifests = await mkdtemp(join(tmpdir(), 'nodelet-e2e-manifests-'));
  lab = await startLab({
    nodeName: NODE,
    kubeletConfiguration: { staticPodPath: manifests, fileCheckFrequency: '1h' },
  });
  before = await podResources(lab);
});

afterAll(async () => {
  await lab?.stop();
  await rm(manifests, { recursive: true, force: true });
});

const file = (name: string): string => join(manifests, `${name}.yaml`);
const write = (name: string, manifest: object): Promise<void> => writeFile(file(name), JSON.stringify(manifest));
const remove = (name: string): Promise<void> => rm(file(name));
const output = (pattern: RegExp) =>
  eventually(`the agent's log to say ${pattern}`, async () => (pattern.test(await agentLog(lab)) ? true : undefined));

describe('a manifest directory', () => {
  // Without inotify each of the three would be seen an hour later.
  it('pods in it are added, changed and removed as the directory changes, and nothing of them is left', async () => {
    await write('web', shellPod('web', `echo first; ${FOREVER}`));
    const first = await ready(lab, `web-${NODE}`);
    expect(first.metadata.annotations).toMatchObject({ 'kubernetes.io/config.source': 'file' });
    expect(first.metadata.ownerReferences).toMatchObject([{ kind: 'Node', name: NODE, controller: true }]);

    await write('web', shellPod('web', `echo second; ${FOREVER}`));
    const second = await podWhen(
      lab,
      `web-${NODE}`,
      'its next version',
      (pod) => pod.metadata.uid !== first.metadata.uid,
    );
    await ready(lab, `web-${NODE}`);
    expect(second.metadata.annotations?.['kubernetes.io/config.hash']).not.toBe(
      first.metadata.annotations?.['kubernetes.io/config.hash'],
    );

    await remove('web');
    await gone(lab, `web-${NODE}`);
    await nothingLeft(lab, before);
  });

  it('a broken manifest is named in the log once and leaves the others alone', async () => {
    await write('good', shellPod('good', FOREVER));
    const good = await ready(lab, `good-${NODE}`);
    await writeFile(file('broken'), 'kind: Pod\n  metadata: [');
    await output(/broken\.yaml: is neither YAML nor JSON/);
    await write('secretive', shellPod('secretive', FOREVER, { volumes: [{ name: 's', secret: { secretName: 'x' } }] }));
    await output(/secretive\.yaml: static pods may not reference secrets/);
    expect((await agentLog(lab)).match(/broken\.yaml: is neither/g)).toHaveLength(1);
    expect(container(await getPod(lab, `good-${NODE}`)).containerID).toBe(container(good).containerID);
    await write('broken', shellPod('mended', FOREVER));
    await ready(lab, `mended-${NODE}`);
    for (const name of ['good', 'broken', 'secretive']) await remove(name);
    await gone(lab, `mended-${NODE}`);
    await gone(lab, `good-${NODE}`);
    await nothingLeft(lab, before);
  });
});

describe('a mirror pod', () => {
  const name = `mirrored-${NODE}`;
  let running: Pod;

  beforeAll(async () => {
    await write('mirrored', shellPod('mirrored', `echo hello from the static pod; ${FOREVER}`));
    running = await ready(lab, name);
  });

  it('leads kubectl logs and exec to the static pod', async () => {
    await prints(lab, 'hello from the static pod\n', 'logs', name);
    expect(await lab.kubectl('exec', name, '--', 'echo', 'inside')).toBe('inside\n');
    expect(await lab.kubectl('get', 'pod', name)).toMatch(/1\/1\s+Running/);
  });

  it('that is edited changes nothing on the node', async () => {
    await lab.kubectl('set', 'image', `pod/${name}`, 'main=nginx:stable');
    await lab.kubectl('label', 'pod', name, 'edited=yes');
    await podWhen(lab, name, 'edited', (pod) => pod.metadata.labels?.['edited'] === 'yes');
    expect(await lab.kubectl('exec', name, '--', 'cat', '/proc/1/comm')).toBe('sh\n');
    const now = await getPod(lab, name);
    expect(container(now)).toMatchObject({ containerID: container(running).containerID, restartCount: 0 });
  });

  it('that is deleted comes back while its pod runs on', async () => {
    await lab.kubectl('delete', 'pod', name, '--wait=false');
    const next = await podWhen(
      lab,
      name,
      'made again and Ready',
      (pod) => pod.metadata.uid !== running.metadata.uid && pod.status?.phase === 'Running',
    );
    expect(container(next)).toMatchObject({ containerID: container(running).containerID, restartCount: 0 });
  });

  it('goes when the manifest goes', async () => {
    await remove('mirrored');
    await gone(lab, name);
    await nothingLeft(lab, before);
  });
});

describe('without a mirror pod', () => {
  // The API server stores no pod in a namespace that it does not have.
  it('a static pod runs, `nodelet explain` names it, and the mirror pod comes with its namespace', async () => {
    const pod = shellPod('hidden', FOREVER);
    await write('hidden', { ...pod, metadata: { name: 'hidden', namespace: 'elsewhere' } });
    // Before that there is no such pod at all.
    const answer = await eventually('it to run', async () => {
      const found = await answerFor(lab, 'pod', `elsewhere/hidden-${NODE}`);
      if (found.rule !== 'mirror-missing') throw new Error(`the answer is ${JSON.stringify(found)}`);
      return found;
    });
    expect(answer).toMatchObject({
      state: 'broken',
      verdict: `it is a static pod that runs on node ${NODE}, and the API server does not show it: it has no mirror pod`,
    });
    expect(answer.commands[0]?.command).toBe('kubectl get namespace elsewhere');
    await lab.kubectl('create', 'namespace', 'elsewhere');
    const elsewhere = { client: lab.client, namespace: 'elsewhere' };
    await eventually('the mirror pod', () => getPod(elsewhere, `hidden-${NODE}`));
    await remove('hidden');
    await gone(elsewhere, `hidden-${NODE}`);
    await lab.kubectl('delete', 'namespace', 'elsewhere', '--wait=false');
    await eventually('the namespace to be gone', async () => {
      const { items } = await lab.client.list<Stored<object>>('/api/v1/namespaces');
      return items.some(({ metadata }) => metadata.name === 'elsewhere') ? undefined : true;
    });
    await nothingLeft(lab, before);
  });
});

describe('the node’s own word', () => {
  /** Bound to the node by name: without the scheduler. */
  const bound = (name: string, spec: object = {}, more: object = {}) =>
    shellPod(name, FOREVER, { nodeName: NODE, ...spec }, more);
  const refused = (name: string) => podWhen(lab, name, 'refused', (pod) => pod.status?.phase === 'Failed');

  it('pods that cannot run here are Failed with the kubelet’s reason, and nothing of them is started', async () => {
    await apply(
      lab,
      bound('too-big', {}, { resources: { requests: { cpu: '1000' } } }),
      bound('elsewhere', { nodeSelector: { disk: 'ssd' } }),
      bound('foreign', { os: { name: 'windows' } }),
      bound('unsafe', { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '65536' }] } }),
    );
    const words: Record<string, readonly [string, RegExp]> = {
      'too-big': [
        'OutOfcpu',
        /^Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, used: \d+/,
      ],
      elsewhere: [
        'NodeAffinity',
        /Predicate NodeAffinity failed: node\(s\) didn't match Pod's node affinity\/selector/,
      ],
      foreign: ['PodOSNotSupported', /Failed to admit pod as the OS field doesn't match node OS/],
      unsafe: ['SysctlForbidden', /forbidden sysctl: "kernel.msgmax" not allowlisted/],
    };
    // A runtime with supplementalGroupsPolicy has the feature in the Node's status.
    const { status: able } = await lab.client.get<Node>(`/api/v1/nodes/${NODE}`);
    if (!('features' in (able ?? {}))) {
      await apply(lab, bound('strict', { securityContext: { supplementalGroupsPolicy: 'Strict' } }));
      words['strict'] = [
        'SupplementalGroupsPolicyNotSupported',
        /SupplementalGroupsPolicy=Strict is not supported in this node/,
      ];
    }
    for (const [name, [reason, message]] of Object.entries(words)) {
      const { status } = await refused(name);
      expect(status?.reason).toBe(reason);
      expect(status?.message).toMatch(message);
      await eventWhen(lab, name, reason);
    }
    await nothingLeft(lab, before);
    await lab.kubectl('delete', 'pod', ...Object.keys(words));
    for (const name of Object.keys(words)) await gone(lab, name);
  });

  it('a host port is given once', async () => {
    const port = { ports: [{ containerPort: 8080, hostPort: await freePort() }] };
    await apply(lab, bound('first', {}, port));
    await ready(lab, 'first');
    await apply(lab, bound('second', {}, port));
    expect((await refused('second')).status).toMatchObject({
      reason: 'NodePorts',
      message:
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    });
    await lab.kubectl('delete', 'pod', 'first', 'second');
    await nothingLeft(lab, before);
  });

  it('a static pod that lacks room is given it by ending an ordinary one', async () => {
    const node = await lab.client.get<Node>(`/api/v1/nodes/${NODE}`);
    const cpu = `${quantityMilli(node.status?.allocatable?.['cpu'] ?? '0') - 50}m`;
    await apply(lab, bound('ordinary', {}, { resources: { requests: { cpu } } }));
    await ready(lab, 'ordinary');
    await write('critical', shellPod('critical', FOREVER, {}, { resources: { requests: { cpu: '100m' } } }));
    await ready(lab, `critical-${NODE}`);
    const victim = await refused('ordinary');
    expect(victim.status).toMatchObject({
      reason: 'Preempting',
      message: 'Preempted in order to admit critical pod',
    });
    await eventWhen(lab, 'ordinary', 'Preempting');
    await remove('critical');
    await lab.kubectl('delete', 'pod', 'ordinary');
    await gone(lab, `critical-${NODE}`);
    await nothingLeft(lab, before);
  });
});
