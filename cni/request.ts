// The protocol between the shim and the agent: bytes in, a CNI invocation out; an outcome in, bytes out. Pure.
//
//   request  "nodelet-cni 1 <env bytes> <stdin bytes>\n" env stdin     env: "CNI_X=value" entries, each ending in NUL
//   answer   "<exit code> <stdout bytes>\n" stdout

import { errorMessage } from '../lib/errors.ts';
import { setOwn } from '../lib/own-property.ts';
import type { TracePod } from '../lib/trace.ts';
import { isJsonObject, tryParseJson } from './json.ts';
import { type Attachment, CniError, CniErrorCode, type JsonObject } from './types.ts';
import { CURRENT_VERSION, IMPLIED_VERSION, isSupported, SUPPORTED_VERSIONS } from './version.ts';

const HEADER = /^nodelet-cni 1 (\d{1,8}) (\d{1,9})\n/;
const MAX_HEADER_BYTES = 40;
/** Far above any real configuration; a caller that sends more is not a container runtime. */
const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

export interface ShimRequest {
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
}

/** The request when all of it is there, undefined while bytes are missing. Throws CniError for anything else. */
export function decodeRequest(bytes: Buffer): ShimRequest | undefined {
  const head = bytes.toString('latin1', 0, MAX_HEADER_BYTES);
  const match = HEADER.exec(head);
  if (match === null) {
    if (bytes.length < MAX_HEADER_BYTES && !head.includes('\n')) return undefined;
    throw new CniError({ code: CniErrorCode.decodingFailure, msg: 'the request is not one of nodelet-cni' });
  }
  const [envBytes, stdinBytes] = [Number(match[1]), Number(match[2])];
  if (envBytes + stdinBytes > MAX_REQUEST_BYTES) {
    throw new CniError({ code: CniErrorCode.decodingFailure, msg: `a request of ${envBytes + stdinBytes} bytes` });
  }
  const start = match[0].length;
  if (bytes.length < start + envBytes + stdinBytes) return undefined;
  const env: Record<string, string> = {};
  for (const pair of bytes.toString('utf8', start, start + envBytes).split('\0')) {
    const at = pair.indexOf('=');
    if (at > 0) setOwn(env, pair.slice(0, at), pair.slice(at + 1));
  }
  return { env, stdin: bytes.toString('utf8', start + envBytes, start + envBytes + stdinBytes) };
}

export interface ShimAnswer {
  readonly code: number;
  readonly stdout: string;
}

export function encodeAnswer(answer: ShimAnswer): Buffer {
  const stdout = Buffer.from(answer.stdout);
  return Buffer.concat([Buffer.from(`${answer.code} ${stdout.length}\n`), stdout]);
}

/** An error in the specification's format for plugins. */
export function errorAnswer(error: unknown, version: string = CURRENT_VERSION): ShimAnswer {
  const fault =
    error instanceof CniError
      ? { code: error.code, msg: error.summary, details: error.details }
      : { code: CniErrorCode.internal, msg: errorMessage(error), details: '' };
  const body = {
    cniVersion: version,
    code: fault.code,
    msg: fault.msg,
    ...(fault.details ? { details: fault.details } : {}),
  };
  return { code: 1, stdout: JSON.stringify(body) };
}

/** A CNI invocation as the shim's caller means it. */
export type Invocation = { readonly version: string } & (
  | { readonly command: 'ADD' | 'DEL' | 'CHECK'; readonly attachment: Attachment }
  | { readonly command: 'STATUS' | 'VERSION' }
  | { readonly command: 'GC' }
);

/** Reads the environment and standard input of a plugin. Throws CniError with the specification's codes. */
export function parseInvocation(request: ShimRequest): Invocation {
  const command = request.env['CNI_COMMAND'] ?? '';
  const netconf = tryParseJson(request.stdin.trim() === '' ? '{}' : request.stdin);
  if (!isJsonObject(netconf)) {
    throw new CniError({ code: CniErrorCode.decodingFailure, msg: 'standard input is not a JSON object' });
  }
  const version = versionOf(netconf);
  switch (command) {
    case 'ADD':
    case 'DEL':
    case 'CHECK':
      return { command, version, attachment: attachmentOf(command, request.env, netconf) };
    case 'STATUS':
    case 'VERSION':
    case 'GC':
      return { command, version };
    default: {
      const msg = command === '' ? 'CNI_COMMAND is missing' : `unknown CNI_COMMAND: ${command}`;
      throw new CniError({ code: CniErrorCode.invalidEnvironment, msg });
    }
  }
}

function versionOf(netconf: JsonObject): string {
  const version = netconf['cniVersion'] ?? IMPLIED_VERSION;
  if (typeof version !== 'string' || !isSupported(version)) {
    throw new CniError({
      code: CniErrorCode.incompatibleVersion,
      msg: `version ${JSON.stringify(version)} is not supported (${SUPPORTED_VERSIONS.join(', ')} are)`,
    });
  }
  return version;
}

function attachmentOf(command: string, env: ShimRequest['env'], netconf: JsonObject): Attachment {
  const netns = env['CNI_NETNS'] ?? '';
  if (netns === '' && command !== 'DEL') {
    throw new CniError({ code: CniErrorCode.invalidEnvironment, msg: 'CNI_NETNS is missing' });
  }
  const runtimeConfig = netconf['runtimeConfig'];
  return {
    containerId: env['CNI_CONTAINERID'] ?? '',
    netns,
    ifName: env['CNI_IFNAME'] ?? '',
    args: env['CNI_ARGS'] ?? '',
    capabilityArgs: isJsonObject(runtimeConfig) ? conventional(runtimeConfig) : {},
  };
}

/** The conventions' structured capabilities (CNI's CONVENTIONS.md); all others are the caller's own. */
const STRUCTURED = ['portMappings', 'bandwidth', 'dns', 'ipRanges'];

/**
 * containerd before 2.0 writes the keys of these with a capital ("HostPort"), which plugins in Go accept as well
 * and others do not. The conventions begin every key with a small letter.
 */
function conventional(runtimeConfig: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(runtimeConfig).map(([name, value]) => [
      name,
      STRUCTURED.includes(name) ? uncapitalised(value) : value,
    ]),
  );
}

function uncapitalised(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(uncapitalised);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.charAt(0).toLowerCase() + key.slice(1), uncapitalised(inner)]),
  );
}

/** The pairs of CNI_ARGS. */
export function parseArgs(args: string): Readonly<Record<string, string>> {
  const pairs = args.split(';').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=');
    return at <= 0 ? [] : [[pair.slice(0, at), pair.slice(at + 1)]];
  });
  return Object.fromEntries(pairs);
}

/** The pod that containerd and CRI-O name in CNI_ARGS; undefined when they name none. */
export function podOf(args: string): TracePod | undefined {
  const pairs = parseArgs(args);
  const [namespace, name, uid] = [pairs['K8S_POD_NAMESPACE'], pairs['K8S_POD_NAME'], pairs['K8S_POD_UID']];
  return namespace === undefined || name === undefined ? undefined : { namespace, name, uid: uid ?? '' };
}
