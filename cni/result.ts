// Results of ADD: read from whatever version a plugin spoke into the shape of 1.1.0, and written in any version.
// Pure. Conversions follow the specification's version history: what an older shape cannot say is left out.

import { isIPv6 } from 'node:net';
import { getOwn } from '../lib/own-property.ts';
import { isJsonObject } from './json.ts';
import {
  type CniDns,
  CniError,
  CniErrorCode,
  type CniInterface,
  type CniIP,
  type CniResult,
  type CniRoute,
  type JsonObject,
} from './types.ts';
import { atLeast, isSupported, SUPPORTED_VERSIONS } from './version.ts';

const EMPTY: CniResult = { interfaces: [], ips: [], routes: [], dns: {} };

/** Fails with error code 6 (decoding failure), naming the field. */
class Reader {
  readonly #source: string;
  constructor(source: string) {
    this.#source = source;
  }
  fail(field: string, problem: string): never {
    throw new CniError({ code: CniErrorCode.decodingFailure, msg: `${this.#source}: ${field}: ${problem}` });
  }
  object(field: string, value: unknown): JsonObject {
    return isJsonObject(value) ? value : this.fail(field, 'must be an object');
  }
  list(field: string, value: unknown): readonly unknown[] {
    if (value === undefined || value === null) return [];
    return Array.isArray(value) ? value : this.fail(field, 'must be a list');
  }
  text(field: string, value: unknown): string {
    return typeof value === 'string' ? value : this.fail(field, 'must be a string');
  }
  optionalText(field: string, value: unknown): string | undefined {
    return value === undefined || value === null || value === '' ? undefined : this.text(field, value);
  }
  optionalInteger(field: string, value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === 'number' && Number.isInteger(value) ? value : this.fail(field, 'must be an integer');
  }
  texts(field: string, value: unknown): readonly string[] {
    return this.list(field, value).map((entry, index) => this.text(`${field}[${index}]`, entry));
  }
}

/**
 * Reads a result. `confVersion` is its version when it has no cniVersion. Throws CniError with code 6 for a shape
 * that is not a result and code 1 for a version that is not supported. `source` names its origin in messages.
 */
export function parseResult(raw: unknown, confVersion: string, source: string): CniResult {
  const reader = new Reader(source);
  const result = reader.object('result', raw);
  const version = reader.optionalText('cniVersion', result['cniVersion']) ?? confVersion;
  if (!isSupported(version)) {
    throw new CniError({
      code: CniErrorCode.incompatibleVersion,
      msg: `${source}: result is of version "${version}" (${SUPPORTED_VERSIONS.join(', ')} are supported)`,
    });
  }
  return atLeast(version, '0.3.0') ? parseCurrent(reader, result) : parseOld(reader, result);
}

function parseCurrent(reader: Reader, result: JsonObject): CniResult {
  const interfaces = reader.list('interfaces', result['interfaces']).map((entry, index): CniInterface => {
    const at = `interfaces[${index}]`;
    const raw = reader.object(at, entry);
    return {
      name: reader.text(`${at}.name`, raw['name']),
      mac: reader.optionalText(`${at}.mac`, raw['mac']),
      mtu: reader.optionalInteger(`${at}.mtu`, raw['mtu']),
      sandbox: reader.optionalText(`${at}.sandbox`, raw['sandbox']),
      socketPath: reader.optionalText(`${at}.socketPath`, raw['socketPath']),
      pciID: reader.optionalText(`${at}.pciID`, raw['pciID']),
    };
  });
  const ips = reader.list('ips', result['ips']).map((entry, index): CniIP => {
    const at = `ips[${index}]`;
    const raw = reader.object(at, entry);
    const number = reader.optionalInteger(`${at}.interface`, raw['interface']);
    if (number !== undefined && (number < 0 || number >= interfaces.length)) {
      reader.fail(`${at}.interface`, `${number} is not the index of an interface`);
    }
    return {
      address: reader.text(`${at}.address`, raw['address']),
      gateway: reader.optionalText(`${at}.gateway`, raw['gateway']),
      interface: number,
    };
  });
  const routes = reader
    .list('routes', result['routes'])
    .map((entry, index) => parseRoute(reader, `routes[${index}]`, entry));
  return { interfaces, ips, routes, dns: parseDns(reader, result['dns']) };
}

function parseRoute(reader: Reader, at: string, entry: unknown): CniRoute {
  const raw = reader.object(at, entry);
  return {
    dst: reader.text(`${at}.dst`, raw['dst']),
    gw: reader.optionalText(`${at}.gw`, raw['gw']),
    mtu: reader.optionalInteger(`${at}.mtu`, raw['mtu']),
    advmss: reader.optionalInteger(`${at}.advmss`, raw['advmss']),
    priority: reader.optionalInteger(`${at}.priority`, raw['priority']),
    table: reader.optionalInteger(`${at}.table`, raw['table']),
    scope: reader.optionalInteger(`${at}.scope`, raw['scope']),
  };
}

function parseDns(reader: Reader, value: unknown): CniDns {
  if (value === undefined || value === null) return {};
  const raw = reader.object('dns', value);
  const texts = (key: string): readonly string[] | undefined => {
    const list = reader.texts(`dns.${key}`, getOwn(raw, key));
    return list.length === 0 ? undefined : list;
  };
  return {
    nameservers: texts('nameservers'),
    domain: reader.optionalText('dns.domain', raw['domain']),
    search: texts('search'),
    options: texts('options'),
  };
}

/** 0.1.0 and 0.2.0: one address per family, each with its own routes, and no interfaces. */
function parseOld(reader: Reader, result: JsonObject): CniResult {
  const ips: CniIP[] = [];
  const routes: CniRoute[] = [];
  for (const family of ['ip4', 'ip6']) {
    const given = getOwn(result, family);
    if (given === undefined || given === null) continue;
    const raw = reader.object(family, given);
    const gateway = reader.optionalText(`${family}.gateway`, raw['gateway']);
    ips.push({ address: reader.text(`${family}.ip`, raw['ip']), gateway, interface: undefined });
    for (const [index, entry] of reader.list(`${family}.routes`, raw['routes']).entries()) {
      const route = parseRoute(reader, `${family}.routes[${index}]`, entry);
      // In these versions a route without a gateway goes through that of its address.
      routes.push(route.gw === undefined && gateway !== undefined ? { ...route, gw: gateway } : route);
    }
  }
  return { ...EMPTY, ips, routes, dns: parseDns(reader, result['dns']) };
}

const isV6 = (cidr: string): boolean => isIPv6(cidr.split('/')[0] ?? '');

/**
 * The routes as plugins make them: one without a gateway goes through the gateway of the pod's first address of its
 * family, where that has one.
 */
export function effectiveRoutes(result: CniResult): readonly CniRoute[] {
  return result.routes.map((route) => {
    const gw = route.gw ?? result.ips.find((ip) => isV6(ip.address) === isV6(route.dst))?.gateway;
    return gw === undefined ? route : { ...route, gw };
  });
}

/** A route as `ip route` writes it. */
export const routeText = ({ dst, gw }: CniRoute): string => (gw === undefined ? dst : `${dst} via ${gw}`);

/** The result as version `version` writes it. */
export function formatResult(result: CniResult, version: string): JsonObject {
  if (!atLeast(version, '0.3.0')) return formatOld(result, version);
  const whole = atLeast(version, '1.1.0');
  return {
    cniVersion: version,
    ...(result.interfaces.length === 0
      ? {}
      : {
          interfaces: result.interfaces.map(({ name, mac, sandbox, mtu, socketPath, pciID }) => ({
            name,
            mac,
            sandbox,
            ...(whole ? { mtu, socketPath, pciID } : {}),
          })),
        }),
    ...(result.ips.length === 0
      ? {}
      : {
          ips: result.ips.map(({ address, gateway, interface: index }) => ({
            version: atLeast(version, '1.0.0') ? undefined : isV6(address) ? '6' : '4',
            interface: index,
            address,
            gateway,
          })),
        }),
    ...(result.routes.length === 0
      ? {}
      : { routes: result.routes.map((route) => (whole ? route : { dst: route.dst, gw: route.gw })) }),
    dns: result.dns,
  };
}

function formatOld(result: CniResult, version: string): JsonObject {
  const family = (v6: boolean): JsonObject | undefined => {
    const ip = result.ips.find((entry) => isV6(entry.address) === v6);
    if (ip === undefined) return undefined;
    const routes = result.routes
      .filter((route) => isV6(route.dst) === v6)
      .map((route) => ({ dst: route.dst, gw: route.gw }));
    return { ip: ip.address, gateway: ip.gateway, routes: routes.length === 0 ? undefined : routes };
  };
  return { cniVersion: version, ip4: family(false), ip6: family(true), dns: result.dns };
}
