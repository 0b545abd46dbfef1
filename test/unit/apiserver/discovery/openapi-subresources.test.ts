// The operations on subresources that OpenAPI documents show, by the names that kube-apiserver 1.34.2 gives them.

import { describe, expect, it } from 'vitest';
import { openapiV2, openapiV3 } from '../../../../apiserver/discovery/openapi.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { isObject } from '../../../../apiserver/patch/json-value.ts';

const UPSTREAM: Readonly<Record<string, string>> = {
  v1: `
    connectCoreV1DeleteNamespacedPodProxy connectCoreV1DeleteNamespacedPodProxyWithPath
    connectCoreV1DeleteNamespacedServiceProxy connectCoreV1DeleteNamespacedServiceProxyWithPath
    connectCoreV1DeleteNodeProxy connectCoreV1DeleteNodeProxyWithPath connectCoreV1GetNamespacedPodAttach
    connectCoreV1GetNamespacedPodExec connectCoreV1GetNamespacedPodPortforward connectCoreV1GetNamespacedPodProxy
    connectCoreV1GetNamespacedPodProxyWithPath connectCoreV1GetNamespacedServiceProxy
    connectCoreV1GetNamespacedServiceProxyWithPath connectCoreV1GetNodeProxy connectCoreV1GetNodeProxyWithPath
    connectCoreV1HeadNamespacedPodProxy connectCoreV1HeadNamespacedPodProxyWithPath
    connectCoreV1HeadNamespacedServiceProxy connectCoreV1HeadNamespacedServiceProxyWithPath connectCoreV1HeadNodeProxy
    connectCoreV1HeadNodeProxyWithPath connectCoreV1OptionsNamespacedPodProxy
    connectCoreV1OptionsNamespacedPodProxyWithPath connectCoreV1OptionsNamespacedServiceProxy
    connectCoreV1OptionsNamespacedServiceProxyWithPath connectCoreV1OptionsNodeProxy
    connectCoreV1OptionsNodeProxyWithPath connectCoreV1PatchNamespacedPodProxy
    connectCoreV1PatchNamespacedPodProxyWithPath connectCoreV1PatchNamespacedServiceProxy
    connectCoreV1PatchNamespacedServiceProxyWithPath connectCoreV1PatchNodeProxy connectCoreV1PatchNodeProxyWithPath
    connectCoreV1PostNamespacedPodAttach connectCoreV1PostNamespacedPodExec connectCoreV1PostNamespacedPodPortforward
    connectCoreV1PostNamespacedPodProxy connectCoreV1PostNamespacedPodProxyWithPath
    connectCoreV1PostNamespacedServiceProxy connectCoreV1PostNamespacedServiceProxyWithPath connectCoreV1PostNodeProxy
    connectCoreV1PostNodeProxyWithPath connectCoreV1PutNamespacedPodProxy connectCoreV1PutNamespacedPodProxyWithPath
    connectCoreV1PutNamespacedServiceProxy connectCoreV1PutNamespacedServiceProxyWithPath connectCoreV1PutNodeProxy
    connectCoreV1PutNodeProxyWithPath createCoreV1NamespacedPodBinding createCoreV1NamespacedPodEviction
    createCoreV1NamespacedServiceAccountToken patchCoreV1NamespaceStatus
    patchCoreV1NamespacedPersistentVolumeClaimStatus patchCoreV1NamespacedPodEphemeralcontainers
    patchCoreV1NamespacedPodResize patchCoreV1NamespacedPodStatus patchCoreV1NamespacedReplicationControllerScale
    patchCoreV1NamespacedReplicationControllerStatus patchCoreV1NamespacedResourceQuotaStatus
    patchCoreV1NamespacedServiceStatus patchCoreV1NodeStatus patchCoreV1PersistentVolumeStatus
    readCoreV1NamespaceStatus readCoreV1NamespacedPersistentVolumeClaimStatus
    readCoreV1NamespacedPodEphemeralcontainers readCoreV1NamespacedPodLog readCoreV1NamespacedPodResize
    readCoreV1NamespacedPodStatus readCoreV1NamespacedReplicationControllerScale
    readCoreV1NamespacedReplicationControllerStatus readCoreV1NamespacedResourceQuotaStatus
    readCoreV1NamespacedServiceStatus readCoreV1NodeStatus readCoreV1PersistentVolumeStatus
    replaceCoreV1NamespaceFinalize replaceCoreV1NamespaceStatus replaceCoreV1NamespacedPersistentVolumeClaimStatus
    replaceCoreV1NamespacedPodEphemeralcontainers replaceCoreV1NamespacedPodResize replaceCoreV1NamespacedPodStatus
    replaceCoreV1NamespacedReplicationControllerScale replaceCoreV1NamespacedReplicationControllerStatus
    replaceCoreV1NamespacedResourceQuotaStatus replaceCoreV1NamespacedServiceStatus replaceCoreV1NodeStatus
    replaceCoreV1PersistentVolumeStatus
`,
  'apps/v1': `
    patchAppsV1NamespacedDaemonSetStatus patchAppsV1NamespacedDeploymentScale patchAppsV1NamespacedDeploymentStatus
    patchAppsV1NamespacedReplicaSetScale patchAppsV1NamespacedReplicaSetStatus patchAppsV1NamespacedStatefulSetScale
    patchAppsV1NamespacedStatefulSetStatus readAppsV1NamespacedDaemonSetStatus readAppsV1NamespacedDeploymentScale
    readAppsV1NamespacedDeploymentStatus readAppsV1NamespacedReplicaSetScale readAppsV1NamespacedReplicaSetStatus
    readAppsV1NamespacedStatefulSetScale readAppsV1NamespacedStatefulSetStatus replaceAppsV1NamespacedDaemonSetStatus
    replaceAppsV1NamespacedDeploymentScale replaceAppsV1NamespacedDeploymentStatus
    replaceAppsV1NamespacedReplicaSetScale replaceAppsV1NamespacedReplicaSetStatus
    replaceAppsV1NamespacedStatefulSetScale replaceAppsV1NamespacedStatefulSetStatus
`,
};

/** Operation of each method of each path below an object. */
function operations(document: object | undefined, root: string): [string, unknown][] {
  const paths: unknown = document === undefined ? undefined : Reflect.get(document, 'paths');
  return Object.entries(isObject(paths) ? paths : {})
    .filter(([path]) => path.startsWith(root) && path.includes('/{name}/'))
    .flatMap(([, item]) => (isObject(item) ? Object.entries(item) : []))
    .flatMap(([method, operation]): [string, unknown][] =>
      method === 'parameters' || !isObject(operation) ? [] : [[String(operation['operationId']), operation]],
    );
}

describe.each(Object.entries(UPSTREAM))('the subresources of %s', (version, text) => {
  const wanted = text.split(/\s+/).filter((name) => name !== '');
  it('are those of kube-apiserver', () => {
    const names = operations(openapiV3(RESOURCE_KINDS, version), '/').map(([name]) => name);
    expect(names.sort()).toEqual(wanted);
  });
  it('are in the document of version 2, too', () => {
    const root = version === 'v1' ? '/api/v1/' : `/apis/${version}/`;
    const names = operations(openapiV2(RESOURCE_KINDS), root).map(([name]) => name);
    expect(names.sort()).toEqual(wanted);
  });
});

it('a subresource has the schema of its own kind, and a stream has parameters and answers with text', () => {
  const found = new Map(operations(openapiV3(RESOURCE_KINDS, 'v1'), '/'));
  const schema = { $ref: '#/components/schemas/io.k8s.api.policy.v1.Eviction' };
  expect(found.get('createCoreV1NamespacedPodEviction')).toMatchObject({
    requestBody: { content: { 'application/json': { schema } } },
    'x-kubernetes-group-version-kind': { group: 'policy', version: 'v1', kind: 'Eviction' },
  });
  expect(found.get('connectCoreV1GetNamespacedPodExec')).toMatchObject({
    parameters: ['command', 'container', 'stderr', 'stdin', 'stdout', 'tty'].map((name) => ({ name, in: 'query' })),
    responses: { '200': { content: { '*/*': { schema: { type: 'string' } } } } },
    'x-kubernetes-action': 'connect',
  });
});
