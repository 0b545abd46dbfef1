// Every command of stock kubectl that the server alone can answer, with its flags, as a table: oldest and newest. What the
// other files of this folder show at length is not here again. Groups run side by side, each in a namespace of its own.

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BEYOND_UPSTREAM, UPSTREAM_RESOURCES } from '../../support/upstream-resources.ts';
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

/** A command line, what it prints (to either stream), its standard input, and its exit code where that is not 0. */
type Step = readonly [line: string, shown: RegExp, input?: string, code?: number];

/** Words of a line; what stands in single quotes is one. */
const words = (line: string): string[] =>
  Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, word]) => quoted ?? word ?? '');

const object = (apiVersion: string, kind: string, name: string, rest: object = {}): string =>
  JSON.stringify({ apiVersion, kind, metadata: { name }, ...rest });
const pod = (name: string, spec: object = {}): string =>
  object('v1', 'Pod', name, { spec: { containers: [{ name: 'c', image: 'i' }], ...spec } });
const deployment = (image: string): string =>
  object('apps/v1', 'Deployment', 'web', {
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image }] } },
    },
  });
const maps = (...names: string[]): string =>
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'List' },
    items: names.map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { set: 'p' } } })),
  });

/** The groups of commands; `id` is in the names of what is in no namespace. */
const groups = (id: string, directory: string): Readonly<Record<string, readonly Step[]>> => ({
  'create: every generator': [
    ['create deployment web --image=nginx:1 --replicas=2 --port=80', /^deployment.apps\/web created/],
    ['create job once --image=busybox -- date', /^job.batch\/once created/],
    [`create clusterrole ${id} --verb=get --resource=nodes`, /created/],
    ['create role r --verb=get --resource=pods,deployments.apps/scale --resource-name=a', /created/],
    ['create rolebinding r --role=r --user=u --group=g --serviceaccount=x:y', /created/],
    [`create clusterrolebinding ${id} --clusterrole=view --user=u`, /created/],
    ['create quota q --hard=pods=100,services=50', /^resourcequota\/q created/],
    ['create quota s --hard=services=50 --scopes=NotTerminating', /unsupported scope applied to resource/, '', 1],
    ['create pdb low --selector=app=web --min-available=50%', /created/],
    ['create pdb high --selector=app=web --max-unavailable=1', /created/],
    [`create priorityclass ${id} --value=1000 --description=x --preemption-policy=Never`, /created/],
    ['create ingress i --class=nginx --rule=foo.com/bar*=web:80,tls=cert --default-backend=web:http', /created/],
    ['create service clusterip headless --tcp=80:8080 --clusterip=None', /created/],
    ['create service nodeport n --tcp=80:8080 --node-port=3000', /valid ports is 30000-32767/, '', 1],
    ['create service loadbalancer l --tcp=80:8080', /created/],
    ['create service externalname e --external-name=example.com --tcp=80', /created/],
    ['create secret docker-registry d --docker-server=a --docker-username=b --docker-password=c', /created/],
    ['create secret generic g --from-literal=a=b --type=example.com/x', /created/],
    ['create configmap m --from-literal=a=b --append-hash', /^configmap\/m-\w{10} created/],
    [
      'create token default --duration=1h --bound-object-kind=Secret --bound-object-name=g',
      /^ey[\w-]+\.[\w-]+\.[\w-]+$/m,
    ],
    [
      'run p --image=nginx --port=80 --expose --labels=app=p --env=A=b --restart=Never -- sleep 1',
      /service\/p created[\s\S]*pod\/p created/,
    ],
    ['run d --image=nginx --dry-run=server -o jsonpath={.spec.serviceAccountName}', /^default$/],
    ['expose deployment web --port=80 --target-port=8080 --type=NodePort', /^service\/web exposed/],
    ['expose pod p --port=81 --name=p2 --protocol=UDP --session-affinity=ClientIP', /^service\/p2 exposed/],
  ],
  'set, scale, autoscale, rollout': [
    ['create -f -', /created/, deployment('nginx:1')],
    ['set env deployment/web A=b', /env updated/],
    ['set env deployment/web --list', /^A=b$/m],
    [
      'set resources deployment web --limits=cpu=200m,memory=512Mi --requests=cpu=100m',
      /resource requirements updated/,
    ],
    ['set serviceaccount deployment web other', /serviceaccount updated/],
    ['create service clusterip web --tcp=80', /created/],
    ['set selector service web app=other', /selector updated/],
    ['create rolebinding r --role=r --user=u', /created/],
    ['set subject rolebinding r --user=u2', /subjects updated/],
    ['scale deployment web --replicas=3 --current-replicas=1', /^deployment.apps\/web scaled/],
    ['scale deployment web --replicas=3 --current-replicas=9', /Expected replicas to be 9, was 3/, '', 1],
    ['autoscale deployment web --min=1 --max=5 --name=h', /horizontalpodautoscaler.autoscaling\/h autoscaled/],
    ['rollout restart deployment web', /restarted/],
    ['rollout pause deployment web', /paused/],
    ['rollout restart deployment web', /can't restart paused deployment/, '', 1],
    ['rollout resume deployment web', /resumed/],
    ['rollout history deployment/web', /No rollout history found/],
    ['rollout undo deployment web --to-revision=7', /unable to find specified revision 7 in history/, '', 1],
    ['label deployments --all c=d', /labeled/],
    ['label deployments -l c=d --list', /c=d/],
    ['annotate deployments --all note=x', /annotated?$/m],
  ],
  'nodes: taint, cordon, drain': [
    ['create -f -', /created/, object('v1', 'Node', id, { spec: {} })],
    ['create -f -', /created/, pod('on-node', { nodeName: id, terminationGracePeriodSeconds: 0 })],
    [`taint nodes ${id} a=b:NoSchedule c:NoExecute`, /tainted/],
    [`taint nodes ${id} a=x:NoSchedule --overwrite`, /modified/],
    [`taint nodes ${id} a- c:NoExecute-`, /untainted/],
    [`cordon ${id}`, /cordoned/],
    [`drain ${id} --force --dry-run=server`, /evicting pod \S+\/on-node \(server dry run\)/],
    [`drain ${id} --force --ignore-daemonsets --delete-emptydir-data --timeout=300s`, /pod\/on-node evicted/],
    [`uncordon ${id}`, /uncordoned/],
    [`describe node ${id}`, /Unschedulable: +false/],
    ['debug -h', /Debug cluster resources/],
  ],
  'apply, diff, patch, edit, wait, replace': [
    ['apply -f -', /created/, deployment('i:1')],
    ['diff -f -', /^\+ +- image: i:2$/m, deployment('i:2'), 1],
    ['diff --server-side --force-conflicts -f -', /^\+ +- image: i:2$/m, deployment('i:2'), 1],
    ['apply --server-side --force-conflicts -f -', /serverside-applied/, deployment('i:2')],
    ['apply view-last-applied deployment web', /image: i:2/],
    ['apply set-last-applied -f - --create-annotation', /no changes required|configured/, deployment('i:2')],
    ['replace --force -f -', /deleted[\s\S]*replaced/, deployment('i:1')],
    ['patch deployment web --subresource=scale --type=merge -p \'{"spec":{"replicas":5}}\'', /patched/],
    ['patch deployment web -p \'{"spec":{"replicas":1}}\' --dry-run=server', /patched/],
    ['wait deployment/web --for=jsonpath={.spec.replicas}=5 --timeout=300s', /condition met/],
    ['edit deployment web', /deployment.apps\/web edited/],
    ['edit deployment web --subresource=status', /Edit cancelled, no changes made/],
    ['get deployment web -o jsonpath={.spec.replicas}', /^6$/],
    ['get deployment web --subresource=status -o name', /^deployment.apps\/web$/m],
    [`apply -k ${directory}`, /configmap\/k-plain created/],
    [`diff -k ${directory}`, /^$/],
    [`delete -k ${directory}`, /configmap "k-plain" deleted/],
  ],
  'apply with pruning, deletion with each cascade': [
    [
      'apply -f - --prune -l set=p --prune-allowlist=core/v1/ConfigMap',
      /one created[\s\S]*two created/,
      maps('one', 'two'),
    ],
    ['apply -f - --prune -l set=p --prune-allowlist=core/v1/ConfigMap', /one unchanged[\s\S]*two pruned/, maps('one')],
    ['apply -f - --server-side --prune --applyset=set', /three serverside-applied[\s\S]*four/, maps('three', 'four')],
    ['apply -f - --server-side --prune --applyset=set', /three serverside-applied[\s\S]*four pruned/, maps('three')],
    [
      'get secret set -o jsonpath={.metadata.annotations}',
      /contains-group-(kinds":"ConfigMap|resources":"configmaps)"/,
    ],
    ['create -f -', /created/, deployment('i')],
    ['delete deployment web --cascade=foreground --wait=false', /deleted/],
    ['get deployment web -o jsonpath={.metadata.finalizers}', /^\["foregroundDeletion"\]$/],
    ['patch deployment web --type=merge -p \'{"metadata":{"finalizers":null}}\'', /patched/],
    ['create -f -', /created/, deployment('i')],
    ['delete deployment web --cascade=orphan --wait=false', /deleted/],
    ['get deployment web -o jsonpath={.metadata.finalizers}', /^\["orphan"\]$/],
    ['delete configmaps --all --dry-run=server', /"one" deleted \(server dry run\)/],
    ['delete cm -l set=p --now', /"one" deleted/],
    ['delete --raw /api/v1/nodes/none', /nodes "none" not found/, '', 1],
  ],
  'get in every form': [
    ['create service nodeport b --tcp=80', /created/],
    ['create service clusterip a --tcp=80', /created/],
    ["get svc -o 'go-template={{range .items}}{{.metadata.name}} {{end}}'", /^a b $/],
    ['get svc -o jsonpath-as-json={.items[0].metadata.name}', /^\[\n +"a"\n\]$/m],
    ['get svc -o custom-columns=NAME:.metadata.name,TYPE:.spec.type', /^a +ClusterIP$/m],
    ['get svc --sort-by=.spec.type --no-headers', /^a [\s\S]*^b /m],
    ['get svc --field-selector=spec.type!=ClusterIP -o name', /^service\/b\n$/],
    ['get svc --chunk-size=1 -o name', /^service\/a\nservice\/b\n$/],
    ['get svc --server-print=false', /^NAME +AGE\na /],
    ["get svc -L app --show-labels -l 'app in (a,c)'", /^a .* app=a$/m],
    ['get --raw /readyz?verbose', /^readyz check passed$/m],
    ['api-resources --categories=api-extensions -o name', /^customresourcedefinitions.apiextensions.k8s.io$/m],
    ['events --types=Normal', /No events found/],
    ['cluster-info dump', /"kind": "NodeList"/],
    ['config view --minify', /current-context: nodelet/],
    ['completion bash', /bash completion/],
    [
      'explain deploy.spec.strategy --output=plaintext-openapiv2',
      /RESOURCE: strategy <Object>[\s\S]*rollingUpdate\t<Object>/,
    ],
    ['explain pod --recursive --output=plaintext-openapiv2', /initialDelaySeconds\t<integer>/],
    ['auth can-i --list', /\*\.\* +\[\] +\[\] +\[\*\]/],
    ["auth can-i '*' '*' --all-namespaces", /^yes$/m],
    // No node has measured anything.
    ['top nodes', /metrics not available yet/, '', 1],
  ],
  debug: [
    ['create -f -', /created/, pod('p', { nodeName: 'none' })],
    ['debug p --image=busybox --target=c --attach=false --profile=netadmin', /Targeting container "c"/],
    [
      'debug p --image=busybox --copy-to=copy --set-image=*=x --share-processes --attach=false --profile=baseline',
      /debugg/,
    ],
    [
      "get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.shareProcessNamespace} {.spec.ephemeralContainers[*].targetContainerName};{end}'",
      /^copy true ;p {2}c;$/,
    ],
  ],
});

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const prefix = `commands-${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  let directory: string;
  let environment: Record<string, string>;

  beforeAll(async () => {
    const home = join(test.root, prefix);
    directory = join(home, 'kustomize');
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'kustomization.yaml'), 'namePrefix: k-\nresources: [map.json]\n');
    await writeFile(join(directory, 'map.json'), maps('plain'));
    const editor = join(home, 'editor');
    await writeFile(editor, '#!/bin/sh\nexec sed -i "s/replicas: 5/replicas: 6/" "$1"\n');
    await chmod(editor, 0o755);
    environment = { KUBE_EDITOR: editor, KUBECTL_APPLYSET: 'true' };
    kubectl = kubectlFor(command, test.kubeconfig, home);
  });

  it.concurrent.each(Object.keys(groups('', '')))('%s', async (group) => {
    const namespace = `${prefix}-${Object.keys(groups('', '')).indexOf(group)}`;
    await kubectl.ok('create', 'namespace', namespace);
    await kubectl.ok('create', 'serviceaccount', 'default', '-n', namespace);
    for (const [line, shown, input, code = 0] of groups(namespace, directory)[group] ?? []) {
      const outcome = await kubectl.run(['-n', namespace, ...words(line)], input, environment);
      const printed = `${outcome.stdout}${outcome.stderr}`;
      expect({ line, code: outcome.code, printed }).toEqual({ line, code, printed: expect.stringMatching(shown) });
    }
  });

  it('api-resources prints kube-apiserver’s list', async () => {
    const printed = await kubectl.ok('api-resources', '-o', 'wide', '--no-headers', '--sort-by=name');
    const lines = printed
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).join(' '));
    const expected = UPSTREAM_RESOURCES.map(({ name, shortNames, apiVersion, namespaced, kind, verbs, categories }) =>
      [name, shortNames.join(), apiVersion, namespaced, kind, verbs.join(), categories.join()]
        .filter((cell) => cell !== '')
        .join(' '),
    );
    const beyond = lines.filter((line) => !expected.includes(line));
    expect(expected.filter((line) => !lines.includes(line))).toEqual([]);
    expect(beyond.map((line) => line.split(' ')[0])).toEqual(BEYOND_UPSTREAM.map(({ name }) => name));
  });
});

const newest = versions.at(-1);

it('explain --recursive describes every kind', async () => {
  if (newest === undefined) throw new Error('there is no kubectl');
  const home = join(test.root, 'explain');
  await mkdir(home, { recursive: true });
  const kubectl = kubectlFor(newest.command, test.kubeconfig, home);
  const explain = async ({ name, apiVersion, kind }: (typeof UPSTREAM_RESOURCES)[number]): Promise<string[]> => {
    const { code, stdout, stderr } = await kubectl.run(['explain', name, `--api-version=${apiVersion}`, '--recursive']);
    return code === 0 && stdout.includes(`KIND:       ${kind}\n`) && /FIELDS:\n/.test(stdout)
      ? []
      : [`${name}: ${stdout}${stderr}`];
  };
  const rest = [...UPSTREAM_RESOURCES];
  const wrong: string[] = [];
  while (rest.length > 0) wrong.push(...(await Promise.all(rest.splice(0, 6).map(explain))).flat());
  expect(wrong).toEqual([]);
});
