// The Corefile's `cache`: answers that are kept. Options as CoreDNS has them. Pure.

import { CorefileError, type Directive, type Line } from '../blocks.ts';
import type { CacheSettings, CacheSide } from '../settings.ts';
import { argumentsOf, duration, integer, zoneList } from '../values.ts';

const CAPACITY = 9984;
const MIN_CAPACITY = 1024;
const SUCCESS_TTL = 3600;
const DENIAL_TTL = 1800;
const MIN_TTL = 5;
/** RFC 2308. */
const MAX_SERVFAIL_MS = 300_000;
const MISSING: ReadonlySet<string> = new Set(['prefetch', 'serve_stale', 'serve_stale_policy']);

function side(line: Line, old: CacheSide): CacheSide {
  const [capacity = '', maxTtl, minTtl] = argumentsOf(line, 1, 3);
  return {
    ...old,
    capacity: Math.max(MIN_CAPACITY, integer(capacity, line.line)),
    maxTtl: maxTtl === undefined ? old.maxTtl : integer(maxTtl, line.line, 1),
    minTtl: minTtl === undefined ? old.minTtl : integer(minTtl, line.line),
  };
}

/** `zones`: those of the server block. Throws CorefileError. */
export function cacheSettings(directive: Directive, zones: readonly string[]): CacheSettings {
  const [first = ''] = directive.args;
  const hasTtl = /^-?\d+$/.test(first);
  const ttl = hasTtl ? integer(first, directive.line, 1) : undefined;
  const common = { capacity: CAPACITY, minTtl: MIN_TTL, except: [] };
  let success: CacheSide = { ...common, maxTtl: ttl ?? SUCCESS_TTL };
  let denial: CacheSide = { ...common, maxTtl: ttl ?? DENIAL_TTL };
  let [servfailTtl, keepTtl] = [MIN_TTL, false];
  for (const line of directive.block) {
    switch (line.name) {
      case 'success':
        success = side(line, success);
        break;
      case 'denial':
        denial = side(line, denial);
        break;
      case 'servfail': {
        const ms = duration(argumentsOf(line, 1)[0] ?? '', line.line);
        if (ms > MAX_SERVFAIL_MS) {
          throw new CorefileError(line.line, 'caching SERVFAIL responses over 5 minutes is not permitted');
        }
        servfailTtl = Math.floor(ms / 1000);
        break;
      }
      case 'disable': {
        const [which, ...names] = line.args;
        const except = zoneList(names, line.line, ['']);
        if (which === 'success') success = { ...success, except };
        else if (which === 'denial') denial = { ...denial, except };
        else throw new CorefileError(line.line, 'cache type for disable must be "success" or "denial"');
        break;
      }
      case 'keepttl':
        argumentsOf(line, 0);
        keepTtl = true;
        break;
      default:
        if (MISSING.has(line.name)) throw new CorefileError(line.line, `'${line.name}' of cache is not there`);
        throw new CorefileError(line.line, `unknown property '${line.name}'`);
    }
  }
  const own = zoneList(hasTtl ? directive.args.slice(1) : directive.args, directive.line, zones);
  return { zones: own, success, denial, servfailTtl, keepTtl };
}
