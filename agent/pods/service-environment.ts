// The environment variables of the services of a container's namespace: X_SERVICE_HOST and the older
// docker-link style ones. Pure.

import type { Pod, Service } from '../../client/types.ts';

/** "my-svc" becomes "MY_SVC". */
function variableName(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}

function hostPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}

function linkVariables(prefix: string, ip: string, ports: NonNullable<NonNullable<Service['spec']>['ports']>) {
  return ports.flatMap((port, index): [string, string][] => {
    const protocol = port.protocol === undefined || port.protocol === '' ? 'TCP' : port.protocol;
    const portPrefix = `${prefix}_PORT_${port.port}_${protocol.toUpperCase()}`;
    const url = `${protocol.toLowerCase()}://${hostPort(ip, port.port)}`;
    return [
      ...(index === 0 ? [[`${prefix}_PORT`, url] as [string, string]] : []),
      [portPrefix, url],
      [`${portPrefix}_PROTO`, protocol.toLowerCase()],
      [`${portPrefix}_PORT`, String(port.port)],
      [`${portPrefix}_ADDR`, ip],
    ];
  });
}

function variablesOf(service: Service): [string, string][] {
  const prefix = variableName(service.metadata.name);
  const ip = service.spec?.clusterIP ?? '';
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  if (first === undefined) return [];
  return [
    [`${prefix}_SERVICE_HOST`, ip],
    [`${prefix}_SERVICE_PORT`, String(first.port)],
    ...ports.flatMap((port): [string, string][] =>
      port.name === undefined || port.name === ''
        ? []
        : [[`${prefix}_SERVICE_PORT_${variableName(port.name)}`, String(port.port)]],
    ),
    ...linkVariables(prefix, ip, ports),
  ];
}

/** Whether a service has an address at all: headless and external ones give no variables. */
function hasAddress(service: Service): boolean {
  const ip = service.spec?.clusterIP;
  return ip !== undefined && ip !== '' && ip !== 'None';
}

/**
 * The variables of the pod's containers. `services` are those of the pod's namespace, `master` those of the namespace
 * of the `kubernetes` service, whose variables every pod gets even with enableServiceLinks false.
 */
export function serviceEnvironment(
  pod: Pod,
  services: readonly Service[],
  master: readonly Service[],
): ReadonlyMap<string, string> {
  const chosen = new Map<string, Service>();
  for (const service of master) {
    if (service.metadata.name === 'kubernetes' && hasAddress(service)) chosen.set('kubernetes', service);
  }
  if (pod.spec.enableServiceLinks !== false) {
    for (const service of services) {
      if (!hasAddress(service)) continue;
      chosen.set(service.metadata.name, service);
    }
  }
  const sorted = [...chosen.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return new Map(sorted.flatMap(variablesOf));
}
