// The admission of connections (exec, attach, port-forward, proxies): before anything reaches a kubelet, the plugins see a
// CONNECT with the options of the request as its object.

import { setOwn } from '../../lib/own-property.ts';
import type { AdmittedKind } from '../admission/plugin.ts';
import { waiting } from '../admission/steps.ts';
import type { RequestAudit } from '../audit/audit.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { admitRequest } from '../registry/admit.ts';
import type { Caller, Registry } from '../registry/registry.ts';
import type { ResourceRequest } from './request.ts';

/** The kind of the options, by resource and subresource; logs are read, not connected to. */
const KINDS = new Map([
  ['pods/exec', 'PodExecOptions'],
  ['pods/attach', 'PodAttachOptions'],
  ['pods/portforward', 'PodPortForwardOptions'],
  ['pods/proxy', 'PodProxyOptions'],
  ['services/proxy', 'ServiceProxyOptions'],
  ['nodes/proxy', 'NodeProxyOptions'],
]);
const FLAGS = ['stdin', 'stdout', 'stderr', 'tty'];

/** The options object of kube-apiserver for the query and the path. Pure. */
export function connectOptions(kind: string, { query, tail }: ResourceRequest): KubeObject {
  const object: KubeObject = { kind, apiVersion: 'v1', metadata: {} };
  if (kind.endsWith('ProxyOptions')) return { ...object, path: tail };
  const ports = query.getAll('ports').flatMap((value) => value.split(',').map(Number));
  if (kind === 'PodPortForwardOptions') return { ...object, ...(ports.length === 0 ? {} : { ports }) };
  for (const flag of FLAGS)
    if (query.has(flag)) setOwn(object, flag, ['true', '1', ''].includes(query.get(flag) ?? ''));
  if (query.has('container')) object['container'] = query.get('container');
  if (kind === 'PodExecOptions') object['command'] = query.getAll('command');
  return object;
}

/** Throws what the plugins refuse with. */
export async function admitConnection(
  registry: Registry,
  request: ResourceRequest,
  caller: Caller,
  warn: (text: string) => void,
  audit: RequestAudit | undefined,
): Promise<void> {
  const { resource, subresource, namespace, name } = request;
  const kindName = KINDS.get(`${resource}/${subresource}`);
  if (kindName === undefined || !registry.hasRow('', resource)) return;
  const kind: AdmittedKind = { group: '', version: 'v1', kind: kindName };
  const place = { namespace, name, subresource, kind, object: connectOptions(kindName, request) };
  const annotate = (key: string, value: string): void => audit?.annotate(key, value);
  const options = { caller, dryRun: false, fieldValidation: 'Ignore', warn, annotate } as const;
  await waiting(admitRequest(registry, registry.rowOf('', resource), 'CONNECT', place, options));
}
