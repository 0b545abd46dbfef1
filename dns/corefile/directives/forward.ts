// The Corefile's `forward`: names that other servers resolve. Plain DNS; options as CoreDNS has them. Pure: files are read later.

import { isIP } from 'node:net';
import { getOwn } from '../../../lib/own-property.ts';
import { CorefileError, type Directive, type Line } from '../blocks.ts';
import type { ForwardSettings, UpstreamSource } from '../settings.ts';
import { argumentsOf, duration, integer, port, wrongArguments, zonesOf } from '../values.ts';

const MAX_UPSTREAMS = 15;
const DNS_PORT = 53;
const POLICIES = ['random', 'round_robin', 'sequential'] as const;
const MISSING: ReadonlySet<string> = new Set([
  'tls',
  'tls_servername',
  'doh_method',
  'next',
  'next_on_nodata',
  'resolver',
  'source_address',
  'max_age',
]);
const RCODES: Readonly<Record<string, number>> = { FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 };

type Draft = { -readonly [Key in keyof ForwardSettings]: ForwardSettings[Key] };

function first(line: Line): string {
  return argumentsOf(line, 1)[0] ?? '';
}

const OPTIONS: Readonly<Record<string, (draft: Draft, line: Line) => void>> = {
  except: (draft, line) => {
    if (line.args.length === 0) throw wrongArguments(line);
    draft.except = [...draft.except, ...line.args.flatMap((zone) => zonesOf(zone, line.line))];
  },
  force_tcp: (draft, line) => {
    argumentsOf(line, 0);
    draft.forceTcp = true;
  },
  prefer_udp: (draft, line) => {
    argumentsOf(line, 0);
    draft.preferUdp = true;
  },
  expire: (draft, line) => {
    draft.expireMs = duration(first(line), line.line);
  },
  max_idle_conns: (draft, line) => {
    draft.maxIdleConns = integer(first(line), line.line);
  },
  read_timeout: (draft, line) => {
    draft.readTimeoutMs = duration(first(line), line.line);
    if (draft.readTimeoutMs <= 0) throw new CorefileError(line.line, 'read_timeout must be positive');
  },
  max_fails: (draft, line) => {
    draft.maxFails = integer(first(line), line.line);
  },
  max_connect_attempts: (draft, line) => {
    draft.maxConnectAttempts = integer(first(line), line.line);
  },
  policy: (draft, line) => {
    const policy = POLICIES.find((each) => each === first(line));
    if (policy === undefined) throw new CorefileError(line.line, `unknown policy '${line.args[0]}'`);
    draft.policy = policy;
  },
  max_concurrent: (draft, line) => {
    draft.maxConcurrent = integer(first(line), line.line);
  },
  health_check: (draft, line) => {
    const [every = '', ...options] = argumentsOf(line, 1, 4);
    draft.healthCheckMs = duration(every, line.line);
    while (options.length > 0) {
      const option = options.shift();
      if (option === 'no_rec') draft.healthCheckRecursion = false;
      else if (option === 'domain') draft.healthCheckDomain = zonesOf(options.shift() ?? '', line.line)[0] ?? '';
      else throw new CorefileError(line.line, `health_check: unknown option ${option}`);
    }
  },
  failfast_all_unhealthy_upstreams: (draft, line) => {
    argumentsOf(line, 0);
    draft.failFast = true;
  },
  failover: (draft, line) => {
    if (line.args.length === 0) throw wrongArguments(line);
    draft.failover = line.args.map((name) => {
      const rcode = getOwn(RCODES, name.toUpperCase());
      if (rcode === undefined) throw new CorefileError(line.line, `${name} is not a valid rcode`);
      return rcode;
    });
  },
};

/** "10.0.0.1", "10.0.0.1:53", "[fd00::1]:53", "dns://…", or a file like /etc/resolv.conf. */
function upstream(text: string, line: number): UpstreamSource {
  const [, scheme = 'dns', rest = ''] = /^(?:([a-z]+):\/\/)?(.*)$/.exec(text) ?? [];
  if (scheme !== 'dns') throw new CorefileError(line, `forward over ${scheme} is not there: ${text}`);
  const [, bracketed, plain, number] = /^(?:\[([^\]]+)\]|([^:]*|[^[\]]*:[^[\]]*:[^[\]]*))(?::(\d+))?$/.exec(rest) ?? [];
  const host = bracketed ?? plain ?? '';
  if (isIP(host) !== 0) return { address: host, port: number === undefined ? DNS_PORT : port(number, line) };
  if (text.startsWith('/')) return { file: text, line };
  throw new CorefileError(line, `not an IP address or file: "${text}" (names as upstreams are not there)`);
}

/** Throws CorefileError. */
export function forwardSettings(directive: Directive): ForwardSettings {
  const [from, ...to] = directive.args;
  if (from === undefined || to.length === 0) throw wrongArguments(directive, directive.args.at(-1));
  if (to.length > MAX_UPSTREAMS) {
    throw new CorefileError(directive.line, `more than ${MAX_UPSTREAMS} TOs configured: ${to.length}`);
  }
  const draft: Draft = {
    from: zonesOf(from, directive.line)[0] ?? '',
    to: to.map((each) => upstream(each, directive.line)),
    except: [],
    forceTcp: false,
    preferUdp: false,
    expireMs: 10_000,
    maxIdleConns: 0,
    readTimeoutMs: 2000,
    maxFails: 2,
    maxConnectAttempts: undefined,
    policy: 'random',
    healthCheckMs: 500,
    healthCheckRecursion: true,
    healthCheckDomain: '',
    maxConcurrent: 0,
    failFast: false,
    failover: [],
  };
  for (const line of directive.block) {
    if (MISSING.has(line.name)) throw new CorefileError(line.line, `'${line.name}' of forward is not there`);
    const option = getOwn(OPTIONS, line.name);
    if (option === undefined) throw new CorefileError(line.line, `unknown property '${line.name}'`);
    option(draft, line);
  }
  return draft;
}
