// Stock kubectl, oldest and newest, and the kinds that controllers work on, against the embedded API server alone: nothing
// rolls out here, but everything is created, defaulted, shown, scaled, changed and refused as by kube-apiserver.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubectls } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

const versions = (await kubectls()).filter(({ full }) => full);

let test: TestServer;
beforeAll(async () => {
  test = await startTestServer();
});
afterAll(async () => {
  await test.stop();
});

const OTHERS = `
apiVersion: v1
kind: ReplicationController
metadata: {name: rc}
spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: db:1}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: agent:1}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {matchLabels: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`;

/** A pod that runs, as far as the server can tell. */
const POD = `
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: one}}
spec: {nodeName: node-a, containers: [{name: c, image: i}]}
`;

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const namespace = `kinds-${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const ok = (...args: string[]): Promise<string> => kubectl.ok('-n', namespace, ...args);

  beforeAll(async () => {
    const home = join(test.root, `home-kinds-${version}`);
    await mkdir(home, { recursive: true });
    kubectl = kubectlFor(command, test.kubeconfig, home);
    await kubectl.ok('create', 'namespace', namespace);
    // There is no controller that makes it.
    await ok('create', 'serviceaccount', 'default');
  });

  it('creates, scales and changes a Deployment', async () => {
    await ok('create', 'deployment', 'web', '--image=nginx:1', '--replicas=2');
    expect(await ok('scale', 'deployment', 'web', '--replicas=5')).toBe('deployment.apps/web scaled\n');
    expect(await ok('get', 'deployment', 'web', '--subresource=scale')).toMatch(
      /^NAME +DESIRED +AVAILABLE +AGE\nweb +5 +0 +\S+\n$/,
    );
    expect(await ok('set', 'image', 'deployment/web', 'nginx=nginx:2')).toBe('deployment.apps/web image updated\n');
    expect(await ok('rollout', 'pause', 'deployment/web')).toBe('deployment.apps/web paused\n');
    expect(await ok('rollout', 'status', 'deployment/web', '--watch=false')).toMatch(/^Waiting for deployment/);
    const lines = (await ok('get', 'deployments', '-o', 'wide')).split('\n');
    expect(lines[0]).toMatch(/^NAME +READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR$/);
    expect(lines[1]).toMatch(/^web +0\/5 +0 +0 +\S+ +nginx +nginx:2 +app=web$/);
    const shown = '{.metadata.generation} {.spec.strategy.rollingUpdate.maxSurge} {.spec.progressDeadlineSeconds}';
    expect(await ok('get', 'deployment', 'web', '-o', `jsonpath=${shown}`)).toBe('4 25% 600');
  });

  it('creates jobs, by hand and from a CronJob', async () => {
    await ok('create', 'cronjob', 'tick', '--image=busybox', '--schedule=*/5 * * * *', '--', 'date');
    await ok('create', 'job', 'now', '--from=cronjob/tick');
    expect(await ok('get', 'cronjobs')).toMatch(/\ntick +\*\/5 \* \* \* \* +<none> +False +0 +<none> /);
    expect(await ok('get', 'jobs')).toMatch(/\nnow +Running +0\/1 /);
    const bad = ['create', 'cronjob', 'bad', '--image=busybox', '--schedule=61 * * * *', '--', 'date'];
    const { code, stderr } = await kubectl.run(['-n', namespace, ...bad]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      'CronJob.batch "bad" is invalid: spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
    );
  });

  it('applies and shows the others', async () => {
    await kubectl.feed(OTHERS, '-n', namespace, 'apply', '-f', '-');
    expect(await ok('scale', 'rc', 'rc', '--replicas=3')).toBe('replicationcontroller/rc scaled\n');
    expect(await ok('scale', 'sts', 'db', '--replicas=3')).toBe('statefulset.apps/db scaled\n');
    const all = await ok('get', 'rc,sts,ds,netpol,ing');
    expect(all).toMatch(/replicationcontroller\/rc +3 +0 +0 /);
    expect(all).toMatch(/statefulset\.apps\/db +0\/3 /);
    expect(all).toMatch(/daemonset\.apps\/agent +0 +0 +0 +0 +0 +<none> /);
    expect(all).toMatch(/networkpolicy\.networking\.k8s\.io\/deny +app=web /);
    expect(all).toMatch(/ingress\.networking\.k8s\.io\/front +<none> +\* +80 /);
  });

  it('evicts a pod only when its budget allows it', async () => {
    await kubectl.feed(POD, '-n', namespace, 'create', '-f', '-');
    const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await ok('patch', 'pod', 'one', '--subresource=status', '-p', JSON.stringify({ status: ready }));
    await ok('create', 'pdb', 'budget', '--selector=app=one', '--min-available=1');
    const eviction = JSON.stringify({
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'one', namespace },
    });
    const evict = () =>
      kubectl.run(['create', '--raw', `/api/v1/namespaces/${namespace}/pods/one/eviction`, '-f', '-'], eviction);
    expect((await evict()).stderr).toContain("Cannot evict pod as it would violate the pod's disruption budget.");
    const allowed = { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 1, expectedPods: 1 };
    await ok(
      'patch',
      'pdb',
      'budget',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status: allowed }),
    );
    expect((await evict()).code).toBe(0);
    expect(await ok('get', 'pdb', 'budget', '-o', 'jsonpath={.status.disruptionsAllowed}')).toBe('0');
    expect(await ok('get', 'pod', 'one', '-o', 'jsonpath={.metadata.deletionTimestamp}')).not.toBe('');
  });

  it('autoscales a Deployment, in either version', async () => {
    await ok('autoscale', 'deployment', 'web', '--max=4', '--cpu-percent=70');
    expect(await ok('get', 'hpa')).toMatch(/\nweb +Deployment\/web +cpu: <unknown>\/70% +1 +4 +0 /);
    const path = (version: string): string =>
      `/apis/autoscaling/${version}/namespaces/${namespace}/horizontalpodautoscalers/web`;
    expect(JSON.parse(await kubectl.ok('get', '--raw', path('v1')))).toMatchObject({
      apiVersion: 'autoscaling/v1',
      spec: { targetCPUUtilizationPercentage: 70 },
    });
    expect(JSON.parse(await kubectl.ok('get', '--raw', path('v2')))).toMatchObject({
      apiVersion: 'autoscaling/v2',
      spec: { metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 70 } } }] },
    });
  });

  it('explains them', async () => {
    expect(await kubectl.ok('explain', 'cronjob.spec.jobTemplate.spec.podFailurePolicy', '--recursive')).toMatch(
      /onExitCodes/,
    );
    const names = (await kubectl.ok('api-resources', '-o', 'name')).split('\n');
    for (const name of ['deployments.apps', 'cronjobs.batch', 'ingresses.networking.k8s.io', 'componentstatuses']) {
      expect(names).toContain(name);
    }
  });
});
