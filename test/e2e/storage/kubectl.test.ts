// The storage kinds with every stock kubectl, against the embedded API server alone: apply, get, describe, patch,
// explain and delete. Without controllers nothing is bound; what controllers write is written here.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from '../kubectl/support.ts';
import { kubectls, onFullList } from '../support/kubectls.ts';

const versions = await kubectls();

let test: TestServer;
beforeAll(async () => {
  test = await startTestServer();
});
afterAll(async () => {
  await test.stop();
});

const MANIFEST = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: fast
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: csi.test
allowVolumeExpansion: true
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: csi.test}
spec: {attachRequired: false, tokenRequests: [{audience: vault}]}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: n1}
spec: {drivers: [{name: csi.test, nodeID: n1, topologyKeys: [zone]}]}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: at}
spec: {attacher: csi.test, nodeName: n1, source: {persistentVolumeName: disk}}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: room, namespace: default}
storageClassName: fast
capacity: 5Gi
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: csi.test, volumeHandle: handle}
  storageClassName: fast
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`;

describe.each(versions)('kubectl $version', ({ command, version, full }) => {
  const fully = onFullList({ full });
  let kubectl: Kubectl;
  const get = (...args: string[]): Promise<string> => kubectl.ok('get', ...args, '--no-headers');

  beforeAll(async () => {
    const home = join(test.root, `home-${version}`);
    await mkdir(home, { recursive: true });
    kubectl = kubectlFor(command, test.kubeconfig, home);
  });

  it('serves the kinds by their names and short names', async () => {
    const list = await kubectl.ok('api-resources', '--no-headers');
    expect(list).toMatch(/^persistentvolumeclaims +pvc +v1 +true +PersistentVolumeClaim/m);
    expect(list).toMatch(/^persistentvolumes +pv +v1 +false +PersistentVolume/m);
    expect(list).toMatch(/^storageclasses +sc +storage\.k8s\.io\/v1 +false +StorageClass/m);
    for (const plural of ['csidrivers', 'csinodes', 'volumeattachments']) {
      expect(list).toMatch(new RegExp(`^${plural} +storage\\.k8s\\.io/v1 +false`, 'm'));
    }
    expect(list).toMatch(/^csistoragecapacities +storage\.k8s\.io\/v1 +true/m);
    expect(await kubectl.ok('explain', 'pvc.spec.volumeMode')).toMatch(/FIELD: *volumeMode/);
    expect(await kubectl.ok('explain', 'storageclass.allowedTopologies.matchLabelExpressions')).toMatch(/values/);
  });

  it('applies them, again without a change, and shows them in tables', async () => {
    expect(await kubectl.feed(MANIFEST, 'apply', '-f', '-')).toMatch(/persistentvolumeclaim\/data created/);
    const again = await kubectl.feed(MANIFEST, 'apply', '-f', '-');
    expect(again.trim().split('\n')).toHaveLength(7);
    for (const line of again.trim().split('\n')) expect(line).toMatch(/ unchanged$/);
    expect(await get('sc')).toMatch(/^fast \(default\) +csi\.test +Delete +Immediate +true +/);
    expect(await get('pv')).toMatch(/^disk +1Gi +RWO +Retain +Pending +fast +<unset> +[\dms]+/);
    expect(await get('pvc', '-o', 'wide')).toMatch(/^data +Pending +fast +<unset> +[\dms]+ +Filesystem/);
    expect(await get('csidrivers')).toMatch(/^csi\.test +false +false +false +vault +false +Persistent +/);
    expect(await get('csinodes')).toMatch(/^n1 +1 +/);
    expect(await get('volumeattachments')).toMatch(/^at +csi\.test +disk +n1 +false +/);
    expect(await get('csistoragecapacities')).toMatch(/^room +fast +5Gi/);
  });

  fully('describes them', async () => {
    const claim = await kubectl.ok('describe', 'pvc', 'data');
    expect(claim).toMatch(/^Finalizers: +\[kubernetes\.io\/pvc-protection\]/m);
    expect(claim).toMatch(/^Used By: +<none>/m);
    const volume = await kubectl.ok('describe', 'pv', 'disk');
    expect(volume).toMatch(/^ +Type: +CSI/m);
    expect(volume).toMatch(/VolumeHandle: +handle/);
    expect(await kubectl.ok('describe', 'sc', 'fast')).toMatch(/^IsDefaultClass: +Yes/m);
    expect(await kubectl.ok('describe', 'csinode', 'n1')).toMatch(/Node ID: +n1/);
    for (const what of ['csidriver/csi.test', 'volumeattachment/at', 'csistoragecapacity/room']) {
      expect(await kubectl.ok('describe', what)).toMatch(/^Name: /m);
    }
  });

  fully('patches a status and waits for it', async () => {
    const phase = '{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}';
    await kubectl.ok('patch', 'pvc', 'data', '--subresource=status', '--type=merge', '-p', phase);
    await kubectl.ok('wait', 'pvc/data', '--for=jsonpath={.status.phase}=Bound', '--timeout=60s');
    await kubectl.ok('patch', 'pvc', 'data', '-p', '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}');
    expect(await kubectl.ok('get', 'pvc', 'data', '-o', 'jsonpath={.spec.resources.requests.storage}')).toBe('2Gi');
  });

  fully('gets validation errors with the field', async () => {
    const tried = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await kubectl.run(args);
      expect(code).toBe(1);
      return stderr;
    };
    expect(await tried('patch', 'pvc', 'data', '-p', '{"spec":{"accessModes":["ReadWriteMany"]}}')).toMatch(
      /The PersistentVolumeClaim "data" is invalid: spec: Forbidden: spec is immutable after creation/,
    );
    expect(await tried('patch', 'sc', 'fast', '-p', '{"provisioner":"other"}')).toMatch(
      /provisioner: Forbidden: updates to provisioner are forbidden/,
    );
    expect(await tried('patch', 'pv', 'disk', '-p', '{"spec":{"csi":{"volumeHandle":"other"}}}')).toMatch(
      /spec\.persistentvolumesource: Forbidden: spec\.persistentvolumesource is immutable after creation/,
    );
  });

  it('deletes them; a protected object goes when its finalizer is removed', async () => {
    await kubectl.ok('delete', 'pvc/data', 'pv/disk', '--wait=false');
    expect(await get('pvc', 'data')).toMatch(/^data +Terminating /);
    expect(await get('pv', 'disk')).toMatch(/ Terminating /);
    for (const what of ['pvc/data', 'pv/disk']) {
      await kubectl.ok('patch', what, '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
      await kubectl.ok('wait', what, '--for=delete', '--timeout=60s');
    }
    await kubectl.feed(MANIFEST, 'delete', '--ignore-not-found', '-f', '-');
    expect(
      await kubectl.ok(
        'get',
        'pv,pvc,sc,csidrivers,csinodes,volumeattachments,csistoragecapacities',
        '-A',
        '-o',
        'name',
      ),
    ).toBe('');
  });
});
