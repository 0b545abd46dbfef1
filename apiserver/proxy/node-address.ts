// Where a node's kubelet is, by its Node object. Pure.

import { isIPv6 } from 'node:net';
import { badRequest, notFound } from '../errors.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';

export interface KubeletAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * The kubelet's endpoint by the Node object. Throws 404 for no such node, which names it as one of `plural`, the resource of the
 * request, as upstream does; 400 for one without an address.
 */
export function kubeletAddress(lookup: ObjectLookup, nodeName: string, plural = 'nodes'): KubeletAddress {
  const node = lookup.get('', 'nodes', '', nodeName);
  if (node === undefined) throw notFound({ group: '', plural }, nodeName);
  return addressOf(node);
}

/** Undefined where the kubelet has not reported its port. */
export function kubeletPort(node: KubeObject): number | undefined {
  const status = isObject(node['status']) ? node['status'] : {};
  const endpoints = isObject(status['daemonEndpoints']) ? status['daemonEndpoints'] : {};
  const endpoint = isObject(endpoints['kubeletEndpoint']) ? endpoints['kubeletEndpoint'] : {};
  return typeof endpoint['Port'] === 'number' ? endpoint['Port'] : undefined;
}

/** Throws 400 for a node that has not reported an address and a port. */
export function addressOf(node: KubeObject): KubeletAddress {
  const status = isObject(node['status']) ? node['status'] : {};
  const addresses = Array.isArray(status['addresses']) ? status['addresses'].filter(isObject) : [];
  const found = ['InternalIP', 'Hostname', 'ExternalIP']
    .map((type) => addresses.find((address) => address['type'] === type)?.['address'])
    .find((address) => typeof address === 'string' && address !== '');
  const port = kubeletPort(node);
  if (typeof found !== 'string' || port === undefined) {
    throw badRequest(`node ${node.metadata.name} has no kubelet endpoint in its status`);
  }
  return { host: found, port };
}

export function hostPort({ host, port }: KubeletAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
