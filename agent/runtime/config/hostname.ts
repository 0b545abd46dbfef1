// A pod's host name and domain, by the API's rules. Pure.

import type { Pod } from '../../../client/types.ts';

/** Longest label of a host name; longest host name the kernel takes. */
const MAX_LABEL = 63;
const MAX_KERNEL_NAME = 64;

export interface PodHostname {
  readonly hostname: string;
  /** `<subdomain>.<namespace>.svc.<cluster domain>`, or '' when the pod has no subdomain. */
  readonly domain: string;
}

/** With the field that is newer than the types (KEP-4762): the whole host name, whatever else there is. */
type WithOverride = Pod['spec'] & { readonly hostnameOverride?: string };

export function podHostname(pod: Pod, clusterDomain: string): PodHostname {
  const { hostnameOverride }: WithOverride = pod.spec;
  if (hostnameOverride !== undefined) return { hostname: hostnameOverride, domain: '' };
  const wanted = pod.spec.hostname ?? pod.metadata.name;
  const hostname = wanted.length <= MAX_LABEL ? wanted : wanted.slice(0, MAX_LABEL).replace(/[-.]+$/, '');
  const subdomain = pod.spec.subdomain ?? '';
  const domain = subdomain === '' ? '' : `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}`;
  return { hostname, domain };
}

/** What `hostname` prints in the pod: the FQDN with setHostnameAsFQDN. Throws when that is too long. */
export function kernelHostname(pod: Pod, clusterDomain: string): string {
  const { hostname, domain } = podHostname(pod, clusterDomain);
  if (pod.spec.setHostnameAsFQDN !== true || domain === '') return hostname;
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > MAX_KERNEL_NAME) {
    throw new RangeError(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long ` +
        `(${MAX_KERNEL_NAME} characters is the max, ${fqdn.length} characters requested)`,
    );
  }
  return fqdn;
}
