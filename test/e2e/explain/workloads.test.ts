// `nodelet explain deployment` on a real node: the API server refuses the pods of ReplicaSets for every reason that the rule
// pods-refused knows, and pods that are there and not Ready.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import { json, TestServer } from '../../support/https-server.ts';
import { makeCa } from '../../support/tls.ts';
import { apply, eventually } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { type Answer, answerWhen } from './answers.ts';

const AWAY = 'away.webhooks.example.com';
const STRICT = 'strict.webhooks.example.com';

let lab: TestLab;
let server: TestServer | undefined;

/** Its pods break no standard, unless `pod` does. */
function deployment(name: string, pod: object = {}, container: object = {}): object {
  const labels = { app: name };
  const strict = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const main = {
    name: 'main',
    image: 'busybox:stable',
    command: ['sleep', '3600'],
    securityContext: strict,
    resources: { limits: { cpu: '10m' } },
    ...container,
  };
  const template = {
    metadata: { labels },
    spec: { terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, containers: [main], ...pod },
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { replicas: 1, selector: { matchLabels: labels }, template },
  };
}

const webhookPath = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

/** An admission webhook that denies whatever it is sent. */
async function startWebhook(): Promise<{ readonly url: string; readonly caBundle: string }> {
  const ca = await makeCa();
  server = await TestServer.start(await ca.server(['127.0.0.1']), ca.cert, ({ body }, response) => {
    const { request }: { request: { uid: string } } = JSON.parse(body);
    const status = { code: 403, message: 'images come from registry.example.com alone' };
    const answer = { uid: request.uid, allowed: false, status };
    json(response, 200, { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer });
  });
  return { url: server.url, caBundle: Buffer.from(ca.cert).toString('base64') };
}

/** For the pods of one Deployment. */
const webhook = (name: string, app: string, clientConfig: object): object => ({
  name,
  clientConfig,
  rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': lab.namespace } },
  objectSelector: { matchLabels: { app } },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  timeoutSeconds: 20,
});

const explained = (
  name: string,
  rule: string,
  verdict: RegExp,
  check: (answer: Answer) => void = () => undefined,
): Promise<Answer> =>
  answerWhen(lab, 'deployment', `${lab.namespace}/${name}`, (answer) => {
    expect(answer.rule).toBe(rule);
    expect(answer.verdict).toMatch(verdict);
    check(answer);
  });

beforeAll(async () => {
  lab = await shareLab();
  const { namespace, client } = lab;
  await client.create(webhookPath, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: namespace },
    webhooks: [
      webhook(AWAY, 'behind-a-webhook', { url: 'https://127.0.0.1:1/' }),
      webhook(STRICT, 'denied', await startWebhook()),
    ],
  });
  await lab.kubectl('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted');
  await apply(lab, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'processors' },
    spec: { hard: { 'limits.cpu': '100m' } },
  });
  // Until its controller has counted, a quota refuses every pod, for that reason.
  const quota = resourcePath('v1', 'resourcequotas', { namespace, name: 'processors' });
  await eventually('the quota to be counted', async () => {
    const { status } = await client.get<{ status?: { hard?: object } }>(quota);
    return status?.hard === undefined ? undefined : true;
  });
  await apply(
    lab,
    deployment('too-much', {}, { resources: { limits: { cpu: '200m' } } }),
    deployment('unlimited', {}, { resources: {} }),
    deployment('behind-a-webhook'),
    deployment('denied'),
    deployment('too-free', {}, { securityContext: { privileged: true } }),
    deployment('homeless', { serviceAccountName: 'missing' }),
    deployment('unready', {}, { image: 'there-is-none:1', imagePullPolicy: 'Never' }),
  );
});

afterAll(async () => {
  if (lab === undefined) return;
  await lab.client.delete(`${webhookPath}/${lab.namespace}`);
  await lab.kubectl('delete', 'deployments', '--all', '--wait=true', '--timeout=100s');
  await lab.stop();
  await server?.[Symbol.asyncDispose]();
});

test.each<[string, RegExp]>([
  ['too-much', /quota processors is used up: requested limits\.cpu=200m, used .*, of limits\.cpu=100m$/],
  ['unlimited', /quota processors demands that each pod says limits\.cpu/],
  ['behind-a-webhook', /admission webhook away\.webhooks\.example\.com does not answer: .*ECONNREFUSED/],
  [
    'denied',
    /admission webhook strict\.webhooks\.example\.com denies them: images come from registry\.example\.com alone$/,
  ],
  ['too-free', /they violate security standard restricted.*: .*privileged/],
  ['homeless', /service account missing does not exist$/],
])('pods of %s are refused: %s', async (name, verdict) => {
  await explained(name, 'pods-refused', verdict, ({ state, chain }) => {
    expect(state).toBe('broken');
    expect(chain[0]?.text).toBe('0 of 1 pods are there');
    expect(chain[1]?.call).toMatchObject({ name: 'POST pods', to: 'the API server' });
  });
});

test('pods that are there and not Ready are named', async () => {
  await explained('unready', 'pods-unready', /^1 pod of it is not Ready: unready-/, ({ commands }) =>
    expect(commands[0]?.command).toMatch(/^nodelet explain --root \S+ pod /),
  );
});
