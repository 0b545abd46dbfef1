// The authenticating proxy: a client whose certificate is of a CA of its own names, in headers, the user on whose behalf it
// sends a request (k8s.io/apiserver/pkg/authentication/request/headerrequest). The headers never leave this server.

import { TLSSocket } from 'node:tls';
import { UserError } from '../../lib/errors.ts';
import { goQuote } from '../../lib/go-words.ts';
import { type HttpRequest, socketOf } from '../../lib/http-message.ts';
import type { Caller } from './attributes.ts';
import { ClientCa, type ClientCaOptions, type TrustedCas } from './client-ca.ts';
import { decodeKey } from './impersonate.ts';

/** kube-apiserver's --requestheader-… flags. */
export interface RequestHeaderOptions {
  /** -client-ca-file: a PEM file, read again when it changes. */
  readonly clientCaFile?: string;
  /** -allowed-names: common names of the proxy's certificate. Default: any. */
  readonly allowedNames?: readonly string[];
  readonly usernameHeaders?: readonly string[];
  readonly uidHeaders?: readonly string[];
  readonly groupHeaders?: readonly string[];
  readonly extraHeaderPrefixes?: readonly string[];
}

/** Names of headers in lower case. */
export interface RequestHeaderSettings {
  readonly clientCaFile: string;
  readonly allowedNames: readonly string[];
  readonly username: readonly string[];
  readonly uid: readonly string[];
  readonly group: readonly string[];
  readonly extra: readonly string[];
}

const AUTHENTICATED = 'system:authenticated';

/** Throws UserError, in upstream's words where it has some. */
export function requestHeaderSettings(options: RequestHeaderOptions): RequestHeaderSettings {
  const { clientCaFile = '', allowedNames = [], usernameHeaders = [], uidHeaders = [] } = options;
  const { groupHeaders = [], extraHeaderPrefixes = [] } = options;
  const named = {
    'requestheader-username-headers': usernameHeaders,
    'requestheader-group-headers': groupHeaders,
    'requestheader-extra-headers-prefix': extraHeaderPrefixes,
    'requestheader-allowed-names': allowedNames,
    'requestheader-uid-headers': uidHeaders,
  };
  for (const [flag, values] of Object.entries(named)) {
    if (values.some((value) => value.trim() === '')) throw new UserError(`empty value in ${goQuote(flag)}`);
  }
  const lower = (names: readonly string[]): string[] => names.map((name) => name.trim().toLowerCase());
  if (uidHeaders.length > 0 && !lower(uidHeaders).includes('x-remote-uid')) {
    const what = 'is set without specifying the standard X-Remote-Uid header';
    throw new UserError(`--requestheader-uid-headers ${what} - API aggregation will not work`);
  }
  // Upstream takes one without the other, and does nothing with it.
  if (clientCaFile === '') throw new UserError('--requestheader-… flags need --requestheader-client-ca-file');
  if (usernameHeaders.length === 0) {
    throw new UserError('--requestheader-client-ca-file needs --requestheader-username-headers');
  }
  return {
    clientCaFile,
    allowedNames,
    username: lower(usernameHeaders),
    uid: lower(uidHeaders),
    group: lower(groupHeaders),
    extra: lower(extraHeaderPrefixes),
  };
}

/** The user that the headers name; undefined for none. `raw` is IncomingMessage.rawHeaders. Pure. */
export function callerInHeaders(raw: readonly string[], settings: RequestHeaderSettings): Caller | undefined {
  const values = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    // Node reads header bytes as Latin-1; clients send UTF-8.
    const value = Buffer.from(raw[i + 1] ?? '', 'latin1').toString('utf8');
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const first = (names: readonly string[]): string =>
    names.map((name) => values.get(name)?.[0] ?? '').find((value) => value !== '') ?? '';
  const name = first(settings.username);
  if (name === '') return undefined;
  const uid = first(settings.uid);
  const groups = settings.group.flatMap((header) => values.get(header) ?? []).filter((group) => group !== '');
  const extra = new Map<string, string[]>();
  for (const prefix of settings.extra) {
    for (const [header, some] of values) {
      if (!header.startsWith(prefix)) continue;
      const key = decodeKey(header.slice(prefix.length));
      extra.set(key, [...(extra.get(key) ?? []), ...some]);
    }
  }
  const settled = groups.includes(AUTHENTICATED) || groups.includes('system:unauthenticated');
  return {
    name,
    ...(uid === '' ? {} : { uid }),
    groups: settled || name === 'system:anonymous' ? groups : [...groups, AUTHENTICATED],
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}

/** Whether the header is one of those that name a user. Pure. `name` in lower case. */
function isOfIdentity(name: string, { username, uid, group, extra }: RequestHeaderSettings): boolean {
  const isNamed = [username, uid, group].some((names) => names.includes(name));
  return isNamed || extra.some((prefix) => name.startsWith(prefix));
}

export class RequestHeaders {
  readonly #settings: RequestHeaderSettings;
  readonly #cas: TrustedCas;
  /** Whether a connection's certificate is a proxy's, by the CAs of a generation. */
  readonly #proxies = new WeakMap<TLSSocket, { readonly generation: number; readonly isProxy: boolean }>();
  /** The headers are gone once they were read; a watch is authorized more than once. */
  readonly #read = new WeakMap<HttpRequest, { readonly caller: Caller | undefined }>();

  constructor(settings: RequestHeaderSettings, cas: TrustedCas) {
    this.#settings = settings;
    this.#cas = cas;
  }

  /** On whose behalf a proxy sends the request; undefined where it is no proxy's, or names no user. */
  callerOf(request: HttpRequest): Caller | undefined {
    const socket = socketOf(request);
    if (!(socket instanceof TLSSocket) || !this.#isProxy(socket)) return undefined;
    let read = this.#read.get(request);
    if (read === undefined) {
      read = { caller: callerInHeaders(request.rawHeaders, this.#settings) };
      this.#read.set(request, read);
    }
    return read.caller;
  }

  /** Removes the headers: nothing behind this server is to believe them. */
  clear({ headers, rawHeaders }: HttpRequest): void {
    for (const name of Object.keys(headers)) if (isOfIdentity(name, this.#settings)) delete headers[name];
    for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
      if (isOfIdentity((rawHeaders[i] ?? '').toLowerCase(), this.#settings)) rawHeaders.splice(i, 2);
    }
  }

  #isProxy(socket: TLSSocket): boolean {
    const { generation } = this.#cas;
    const known = this.#proxies.get(socket);
    if (known?.generation === generation) return known.isProxy;
    const peer = socket.authorized ? socket.getPeerX509Certificate() : undefined;
    const isProxy = peer !== undefined && this.#cas.accepts(peer) && this.#isAllowed(socket);
    this.#proxies.set(socket, { generation, isProxy });
    return isProxy;
  }

  #isAllowed(socket: TLSSocket): boolean {
    const { allowedNames } = this.#settings;
    if (allowedNames.length === 0) return true;
    const name: string | string[] | undefined = socket.getPeerCertificate().subject?.CN;
    return typeof name === 'string' && allowedNames.includes(name);
  }
}

/** The authenticating proxy's CA and headers. */
export interface ProxyCa {
  readonly settings: RequestHeaderSettings;
  readonly ca: ClientCa;
}

/** Undefined without flags of it. Throws UserError. */
export function openProxyCa(
  options: RequestHeaderOptions | undefined,
  parts: Pick<ClientCaOptions, 'clock' | 'log'>,
): ProxyCa | undefined {
  if (options === undefined) return undefined;
  const settings = requestHeaderSettings(options);
  return { settings, ca: new ClientCa({ what: 'request header CA file', path: settings.clientCaFile, ...parts }) };
}
