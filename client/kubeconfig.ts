// Reads a kubeconfig file into what a connection needs. Everything wrong with the file is a UserError of one line that
// names the file and the problem. Never connects to anything, and knows no in-cluster configuration.

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { errnoOf, errorMessage, UserError } from '../lib/errors.ts';
import { getOwn } from '../lib/own-property.ts';

/** Where an API server is and who we are to it. Certificates and keys are PEM text. */
export interface ClusterAccess {
  /** "https://10.0.0.1:6443", possibly with a path prefix. */
  readonly server: string;
  readonly ca?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** Name to expect in the server's certificate instead of the host in `server`. */
  readonly tlsServerName?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly token?: string;
  /** File that holds the token; read again while we run, as projected tokens rotate. Wins over `token`. */
  readonly tokenFile?: string;
  /** The context's namespace. */
  readonly namespace?: string;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(fields: Fields, key: string): string | undefined {
  const value = getOwn(fields, key);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Something wrong inside the file; becomes a UserError with the path in front. */
class Problem extends Error {}

/**
 * Access by the named context, or by the file's current-context. File references in it are relative to the file's
 * own directory. Throws UserError for a file that is missing, does not parse, or does not say enough.
 */
export async function loadKubeconfig(path: string, context?: string): Promise<ClusterAccess> {
  let source: string;
  try {
    source = await readFile(path, 'utf8');
  } catch (error) {
    const why = errnoOf(error) === 'ENOENT' ? 'no such file' : errorMessage(error);
    throw new UserError(`kubeconfig ${path}: ${why}`, { cause: error });
  }
  try {
    return await read(source, dirname(resolve(path)), context);
  } catch (error) {
    if (error instanceof Problem) throw new UserError(`kubeconfig ${path}: ${error.message}`, { cause: error.cause });
    throw error;
  }
}

async function read(source: string, directory: string, context: string | undefined): Promise<ClusterAccess> {
  const config = parseFields(source);
  const contextName = context ?? text(config, 'current-context');
  if (contextName === undefined) throw new Problem('no current-context is set');
  const chosen = entry(config, 'contexts', 'context', contextName);
  const clusterName = text(chosen, 'cluster');
  if (clusterName === undefined) throw new Problem(`context "${contextName}" names no cluster`);
  const cluster = entry(config, 'clusters', 'cluster', clusterName);
  const userName = text(chosen, 'user');
  const user = userName === undefined ? {} : entry(config, 'users', 'user', userName);
  refuseUnsupported(cluster, user, userName);

  const ca = await material(cluster, 'certificate-authority', directory);
  const clientCert = await material(user, 'client-certificate', directory);
  const clientKey = await material(user, 'client-key', directory);
  if ((clientCert === undefined) !== (clientKey === undefined)) {
    const [has, lacks] = clientKey === undefined ? ['certificate', 'key'] : ['key', 'certificate'];
    throw new Problem(`user "${userName}" has a client ${has} but no client ${lacks}`);
  }
  const token = text(user, 'token');
  const tokenFile = text(user, 'tokenFile');
  const tlsServerName = text(cluster, 'tls-server-name');
  const namespace = text(chosen, 'namespace');
  return {
    server: serverUrl(cluster, clusterName),
    ...(ca === undefined ? {} : { ca }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { insecureSkipTlsVerify: true } : {}),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(clientCert === undefined || clientKey === undefined ? {} : { clientCert, clientKey }),
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile: resolve(directory, tokenFile) }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function parseFields(source: string): Fields {
  let config: unknown;
  try {
    config = parse(source);
  } catch (error) {
    const firstLine = errorMessage(error).split('\n', 1)[0] ?? '';
    throw new Problem(`does not parse: ${firstLine.replace(/:$/, '')}`, { cause: error });
  }
  if (!isFields(config)) throw new Problem('does not parse: not a kubeconfig (a mapping is expected)');
  const kind = text(config, 'kind');
  if (kind !== undefined && kind !== 'Config') throw new Problem(`kind is "${kind}", not "Config"`);
  return config;
}

/** One named entry of a kubeconfig list: { name, [field]: {...} }. */
function entry(config: Fields, list: string, field: string, name: string): Fields {
  const entries = getOwn(config, list) ?? [];
  if (!Array.isArray(entries)) throw new Problem(`${list} is not a list`);
  const named = entries.filter(isFields);
  const found = named.find((candidate) => candidate['name'] === name);
  if (found === undefined) {
    const known = named.map((candidate) => text(candidate, 'name')).filter((known) => known !== undefined);
    throw new Problem(`no ${field} named "${name}" (it has: ${known.join(', ') || 'none'})`);
  }
  const value = getOwn(found, field) ?? {};
  if (!isFields(value)) throw new Problem(`${field} "${name}" is not a mapping`);
  return value;
}

function serverUrl(cluster: Fields, name: string): string {
  const server = text(cluster, 'server');
  if (server === undefined) throw new Problem(`cluster "${name}" has no server`);
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol)) {
    throw new Problem(`cluster "${name}": server "${server}" is not an http or https URL`);
  }
  return server.replace(/\/+$/, '');
}

/** PEM text from `<field>-data` (base64) or from the file that `<field>` names. */
async function material(fields: Fields, field: string, directory: string): Promise<string | undefined> {
  const data = text(fields, `${field}-data`);
  const file = text(fields, field);
  if (data !== undefined) {
    const pem = Buffer.from(data, 'base64').toString('utf8');
    if (!pem.includes('-----BEGIN ')) throw new Problem(`${field}-data is not base64-encoded PEM`);
    return pem;
  }
  if (file === undefined) return undefined;
  const path = resolve(directory, file);
  let pem: string;
  try {
    pem = await readFile(path, 'utf8');
  } catch (error) {
    const why = errnoOf(error) === 'ENOENT' ? 'no such file' : errorMessage(error);
    throw new Problem(`${field} ${path}: ${why}`, { cause: error });
  }
  if (!pem.includes('-----BEGIN ')) throw new Problem(`${field} ${path}: not a PEM file`);
  return pem;
}

/** Settings that would change who we are or how we connect are refused, not skipped over. */
function refuseUnsupported(cluster: Fields, user: Fields, userName: string | undefined): void {
  for (const field of ['exec', 'auth-provider', 'username', 'as']) {
    if (getOwn(user, field) !== undefined) throw new Problem(`user "${userName}": ${field} is not supported`);
  }
  if (cluster['proxy-url'] !== undefined) throw new Problem('proxy-url is not supported');
}
