// A Corefile as settings: each server block with its plugins. What is not there is refused by name, with its line. Pure.

import { getOwn } from '../../lib/own-property.ts';
import { CorefileError, type Directive, readBlocks, type ServerBlock } from './blocks.ts';
import { cacheSettings } from './directives/cache.ts';
import { forwardSettings } from './directives/forward.ts';
import { kubernetesSettings } from './directives/kubernetes.ts';
import { flag, health, hosts, loadbalance, log, prometheus, ready, reload } from './directives/small.ts';
import type { ServerSettings } from './settings.ts';
import { port, zonesOf } from './values.ts';

const DNS_PORT = 53;
/** CoreDNS has them, this server does not. */
const MISSING: ReadonlySet<string> = new Set([
  ...['acl', 'any', 'auto', 'autopath', 'azure', 'bind', 'bufsize', 'cancel', 'chaos', 'clouddns', 'debug', 'dns64'],
  ...['dnssec', 'dnstap', 'erratic', 'etcd', 'file', 'geoip', 'grpc', 'grpc_server', 'header', 'https', 'https3'],
  ...['import', 'k8s_external', 'local', 'metadata', 'minimal', 'multisocket', 'nomad', 'nsid', 'on', 'pprof', 'quic'],
  ...['rewrite', 'root', 'route53', 'secondary', 'sign', 'template', 'timeouts', 'tls', 'trace', 'transfer', 'tsig'],
  ...['view', 'whoami'],
]);

type Draft = { -readonly [Key in keyof ServerSettings]: ServerSettings[Key] };

const DIRECTIVES: Readonly<Record<string, (draft: Draft, directive: Directive) => void>> = {
  errors: (draft, directive) => {
    draft.errors = flag(directive);
  },
  loop: (draft, directive) => {
    draft.loop = flag(directive);
  },
  loadbalance: (draft, directive) => {
    draft.loadbalance = loadbalance(directive);
  },
  log: (draft, directive) => {
    draft.logs = [...draft.logs, log(directive)];
  },
  health: (draft, directive) => {
    draft.health = health(directive);
  },
  ready: (draft, directive) => {
    draft.ready = ready(directive);
  },
  prometheus: (draft, directive) => {
    draft.prometheus = prometheus(directive);
  },
  reload: (draft, directive) => {
    draft.reload = reload(directive);
  },
  cache: (draft, directive) => {
    draft.cache = cacheSettings(directive, zonesIn(draft));
  },
  hosts: (draft, directive) => {
    draft.hosts = hosts(directive, zonesIn(draft));
  },
  kubernetes: (draft, directive) => {
    draft.kubernetes = kubernetesSettings(directive, zonesIn(draft));
  },
  forward: (draft, directive) => {
    draft.forwards = [...draft.forwards, forwardSettings(directive)];
  },
};
const REPEATED: ReadonlySet<string> = new Set(['log', 'forward']);

function zonesIn({ zones }: Draft): readonly string[] {
  return zones.map(({ zone }) => zone);
}

/** "cluster.local:1053", ".", "10.0.0.0/24": zones with a port. */
function keyOf(key: string, line: number): ServerSettings['zones'] {
  const [, scheme = 'dns', rest = ''] = /^(?:([a-z0-9]+):\/\/)?(.*)$/i.exec(key) ?? [];
  if (scheme !== 'dns') throw new CorefileError(line, `servers of ${scheme}:// are not there`);
  const [, zone = '', number] = /^(.*?)(?::(\d+))?$/.exec(rest) ?? [];
  const at = number === undefined ? DNS_PORT : port(number, line);
  return zonesOf(zone === '' ? '.' : zone, line).map((each) => ({ zone: each, port: at }));
}

function serverSettings(block: ServerBlock): ServerSettings {
  const draft: Draft = {
    line: block.line,
    zones: block.keys.flatMap((key) => keyOf(key, block.line)),
    errors: false,
    logs: [],
    health: undefined,
    ready: undefined,
    prometheus: undefined,
    reload: undefined,
    loop: false,
    loadbalance: false,
    cache: undefined,
    hosts: undefined,
    kubernetes: undefined,
    forwards: [],
  };
  const seen = new Set<string>();
  for (const directive of block.directives) {
    const { name, line } = directive;
    if (name.startsWith('(')) throw new CorefileError(line, 'snippets are not there');
    if (MISSING.has(name)) throw new CorefileError(line, `the plugin '${name}' is not there`);
    const read = getOwn(DIRECTIVES, name);
    if (read === undefined) throw new CorefileError(line, `Unknown directive '${name}'`);
    if (seen.has(name) && !REPEATED.has(name)) {
      throw new CorefileError(line, `plugin/${name}: this plugin can only be used once per Server Block`);
    }
    seen.add(name);
    read(draft, directive);
  }
  return draft;
}

/** Throws CorefileError. */
export function parseCorefile(text: string): readonly ServerSettings[] {
  const blocks = readBlocks(text);
  const [first] = blocks;
  if (first === undefined) throw new CorefileError(1, 'there is no server block');
  const servers = blocks.map((block) => {
    if (block.keys[0]?.startsWith('(') === true) throw new CorefileError(block.line, 'snippets are not there');
    return serverSettings(block);
  });
  const seen = new Map<string, number>();
  for (const { zones, line } of servers) {
    for (const { zone, port: at } of zones) {
      const key = `${zone}.:${at}`;
      if (seen.has(key)) throw new CorefileError(line, `cannot serve dns://${key} - it is already defined`);
      seen.set(key, line);
    }
  }
  return servers;
}
