// The ReplicationController controller does what that of ReplicaSets does (replicaset.test.ts); this is what differs: the kind, the
// selector, and where it writes.

import { describe, expect, it } from 'vitest';
import { ReplicationControllerController } from '../../../../controlplane/controllers/replicationcontroller/replicationcontroller.ts';
import type { ReplicationController } from '../../../../controlplane/controllers/shared/objects.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { meta } from '../environment.ts';
import { liveEnvironment } from './live.ts';

const PATH = '/api/v1/namespaces/demo/replicationcontrollers/web';
const controller = (replicas: number): ReplicationController => ({
  metadata: { ...meta('web'), namespace: 'demo', generation: 1 },
  spec: {
    replicas,
    selector: { app: 'web' },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c' }] } },
  },
});

async function start(replicas: number) {
  const env = liveEnvironment();
  env.run(new ReplicationControllerController(env.context, env.informers));
  env.put(PATH, controller(replicas));
  await settle();
  return env;
}

describe('a replication controller', () => {
  it('makes its pods, and reports them', async () => {
    const { events, informers } = await start(2);
    const [pod] = informers.pods.list();
    expect(pod?.metadata).toMatchObject({
      generateName: 'web-',
      ownerReferences: [{ apiVersion: 'v1', kind: 'ReplicationController', name: 'web', uid: 'uid-web' }],
    });
    expect(events).toEqual(
      informers.pods.list().map(({ metadata }) => `web SuccessfulCreate: Created pod: ${metadata.name}`),
    );
    expect(informers.replicationControllers.get('demo/web')?.status).toMatchObject({
      replicas: 2,
      fullyLabeledReplicas: 2,
      observedGeneration: 1,
    });
  });

  it('scales down', async () => {
    const env = await start(2);
    const known = env.informers.replicationControllers.get('demo/web') ?? controller(2);
    env.put(PATH, { ...known, spec: { ...known.spec, replicas: 0 } });
    await settle();
    expect(env.client.writes.filter(({ verb }) => verb === 'delete')).toHaveLength(2);
  });

  it('adopts pods that its labels select, and releases those that they no longer do', async () => {
    const { client, put, serverHas, run, context, informers } = liveEnvironment();
    const metadata = { namespace: 'demo', name: 'own', labels: { app: 'web' } };
    await client.create('/api/v1/namespaces/demo/pods', { metadata, spec: {} });
    run(new ReplicationControllerController(context, informers));
    put(PATH, controller(1));
    await settle();
    const path = '/api/v1/namespaces/demo/pods/own';
    const patches = (): readonly unknown[] =>
      client.writes.filter(({ verb }) => verb === 'patch').map(({ body }) => body);
    expect(patches()).toMatchObject([{ metadata: { ownerReferences: [{ kind: 'ReplicationController' }] } }]);
    const adopted = serverHas(path);
    if (adopted === undefined) throw new Error('the pod is there');
    const labels = { app: 'other' };
    put(path, { ...adopted, metadata: { ...adopted.metadata, ...{ labels } } });
    await settle();
    expect(patches().at(-1)).toMatchObject({ metadata: { ownerReferences: [{ $patch: 'delete', uid: 'uid-web' }] } });
    expect(informers.pods.size).toBe(2);
  });
});
