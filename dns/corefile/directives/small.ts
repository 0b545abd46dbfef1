// The Corefile's directives with few options: hosts, log, errors, health, ready, prometheus, reload, loop, loadbalance. Pure.

import { isIP } from 'node:net';
import { CorefileError, type Directive } from '../blocks.ts';
import type { HostsSettings, HttpAddress, LogSettings, ResponseClass, ServerSettings } from '../settings.ts';
import { argumentsOf, duration, httpAddress, integer, wrongArguments, zoneList } from '../values.ts';

const HOSTS_TTL = 3600;
const HOSTS_RELOAD_MS = 5000;
const MAX_HOSTS_TTL = 65_535;
const COMMON_LOG =
  '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}';
const COMBINED_LOG =
  '{remote}:{port} - {>id} "{>opcode} {type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}';
const CLASSES: readonly ResponseClass[] = ['all', 'success', 'denial', 'error'];

function noBlock({ name, block: [line] }: Directive): void {
  if (line !== undefined) throw new CorefileError(line.line, `'${line.name}' of ${name} is not there`);
}

/** Options that CoreDNS has, and that are not there, are refused like those that it does not have. */
export function flag(directive: Directive): true {
  argumentsOf(directive, 0);
  noBlock(directive);
  return true;
}

export function loadbalance(directive: Directive): true {
  noBlock(directive);
  const [policy = 'round_robin'] = argumentsOf(directive, 0, 2);
  if (policy !== 'round_robin')
    throw new CorefileError(directive.line, `policy '${policy}' of loadbalance is not there`);
  argumentsOf(directive, 0, 1);
  return true;
}

function at(directive: Directive, usual: number, host = ''): HttpAddress {
  const [text] = argumentsOf(directive, 0, 1);
  return text === undefined ? { host, port: usual } : httpAddress(text, directive.line);
}

export function ready(directive: Directive): HttpAddress {
  noBlock(directive);
  return at(directive, 8181);
}

export function prometheus(directive: Directive): HttpAddress {
  noBlock(directive);
  return at(directive, 9153, 'localhost');
}

export function health(directive: Directive): NonNullable<ServerSettings['health']> {
  let lameduckMs = 0;
  for (const line of directive.block) {
    if (line.name !== 'lameduck') throw new CorefileError(line.line, `unknown property '${line.name}'`);
    lameduckMs = duration(argumentsOf(line, 1)[0] ?? '', line.line);
  }
  return { at: at(directive, 8080), lameduckMs };
}

export function reload(directive: Directive): NonNullable<ServerSettings['reload']> {
  noBlock(directive);
  const [interval = '30s', jitter = '15s'] = argumentsOf(directive, 0, 2);
  const intervalMs = duration(interval, directive.line);
  const jitterMs = duration(jitter, directive.line);
  if (intervalMs < 2000) throw new CorefileError(directive.line, 'interval value must be greater or equal to 2s');
  return { intervalMs, jitterMs: Math.min(jitterMs, intervalMs / 2) };
}

export function log(directive: Directive): LogSettings {
  const zones: string[] = [];
  let format = COMMON_LOG;
  const { line: at } = directive;
  for (const [index, text] of directive.args.entries()) {
    if (!text.includes('{')) zones.push(...zoneList([text], at, []));
    else if (index !== directive.args.length - 1) throw wrongArguments(directive, text);
    else format = text.replaceAll('{common}', COMMON_LOG).replaceAll('{combined}', COMBINED_LOG);
  }
  const classes: ResponseClass[] = [];
  for (const line of directive.block) {
    if (line.name !== 'class' || line.args.length === 0) throw wrongArguments(line);
    for (const text of line.args) {
      const known = CLASSES.find((each) => each === text);
      if (known === undefined) throw new CorefileError(line.line, `unknown class '${text}'`);
      classes.push(known);
    }
  }
  return { zones: zones.length > 0 ? zones : [''], format, classes: classes.length > 0 ? classes : ['all'] };
}

/** `zones`: those of the server block. */
export function hosts(directive: Directive, zones: readonly string[]): HostsSettings {
  const [file = '/etc/hosts', ...own] = directive.args;
  if (!file.startsWith('/')) throw new CorefileError(directive.line, `"${file}" is no absolute path`);
  let [ttl, reverse, reloadMs] = [HOSTS_TTL, true, HOSTS_RELOAD_MS];
  let fallThrough: HostsSettings['fallThrough'];
  const inline: string[] = [];
  for (const line of directive.block) {
    const { name, args } = line;
    if (isIP(name) !== 0 && args.length > 0) inline.push([name, ...args].join(' '));
    else if (name === 'fallthrough') fallThrough = zoneList(args, line.line, ['']);
    else if (name === 'no_reverse') {
      argumentsOf(line, 0);
      reverse = false;
    } else if (name === 'ttl') ttl = integer(argumentsOf(line, 1)[0] ?? '', line.line, 1, MAX_HOSTS_TTL);
    else if (name === 'reload') reloadMs = duration(argumentsOf(line, 1)[0] ?? '', line.line);
    else throw new CorefileError(line.line, `unknown property '${name}'`);
  }
  return { file, zones: zoneList(own, directive.line, zones), inline, ttl, reverse, reloadMs, fallThrough };
}
