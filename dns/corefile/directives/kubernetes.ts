// The Corefile's `kubernetes`: the cluster's own names. Options as CoreDNS has them. Pure.

import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { isReverseZone } from '../../cluster/addresses.ts';
import { CorefileError, type Directive, type Line } from '../blocks.ts';
import type { KubernetesSettings } from '../settings.ts';
import { argumentsOf, duration, integer, wrongArguments, zoneList } from '../values.ts';

const DEFAULT_TTL = 5;
const MAX_TTL = 3600;
const STARTUP_MS = 5000;
const POD_MODES = ['disabled', 'insecure', 'verified'] as const;
/** How the API server is reached is what the command was started with. */
const BY_FLAG: ReadonlySet<string> = new Set(['endpoint', 'tls', 'kubeconfig']);
const MISSING: ReadonlySet<string> = new Set([
  'multicluster',
  'zonal',
  'apiserver_qps',
  'apiserver_burst',
  'apiserver_max_inflight',
]);

interface Draft {
  pods: KubernetesSettings['pods'];
  endpointPodNames: boolean;
  namespaces: readonly string[];
  namespaceLabels: LabelSelector | undefined;
  labels: LabelSelector | undefined;
  ttl: number;
  noEndpoints: boolean;
  ignoreEmptyService: boolean;
  fallThrough: KubernetesSettings['fallThrough'];
  startupTimeoutMs: number;
}

/** "a=b, c in (d, e), f, !g": a selector as kubectl takes it. Throws CorefileError. */
export function labelSelector(text: string, line: number): LabelSelector {
  const parts = text.split(/,(?![^(]*\))/).map((part) => part.trim());
  const matchExpressions = parts.map((part) => {
    const set = /^([^\s!=]+)\s+(in|notin)\s+\(([^()]*)\)$/.exec(part);
    const values = (list = ''): string[] => list.split(',').map((value) => value.trim());
    if (set !== null) return { key: set[1] ?? '', operator: set[2] === 'in' ? 'In' : 'NotIn', values: values(set[3]) };
    const [, key, operator, value] = /^([^\s!=]+)\s*(==?|!=)\s*([^\s!=]*)$/.exec(part) ?? [];
    if (key !== undefined) return { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value ?? ''] };
    const [, not = '', name] = /^(!?)([^\s!=()]+)$/.exec(part) ?? [];
    if (name === undefined) throw new CorefileError(line, `unable to parse label selector value: '${text}'`);
    return { key: name, operator: not === '' ? 'Exists' : 'DoesNotExist' };
  });
  return { matchExpressions };
}

function podMode(line: Line): KubernetesSettings['pods'] {
  const [mode] = argumentsOf(line, 1);
  const known = POD_MODES.find((each) => each === mode);
  if (known !== undefined) return known;
  throw new CorefileError(line.line, `wrong value for pods: ${mode},  must be one of: disabled, verified, insecure`);
}

function selector(line: Line): LabelSelector {
  if (line.args.length === 0) throw wrongArguments(line);
  return labelSelector(line.args.join(' '), line.line);
}

const OPTIONS: Readonly<Record<string, (draft: Draft, line: Line) => void>> = {
  pods: (draft, line) => {
    draft.pods = podMode(line);
  },
  endpoint_pod_names: (draft, line) => {
    argumentsOf(line, 0);
    draft.endpointPodNames = true;
  },
  namespaces: (draft, line) => {
    if (line.args.length === 0) throw wrongArguments(line);
    draft.namespaces = line.args;
  },
  labels: (draft, line) => {
    draft.labels = selector(line);
  },
  namespace_labels: (draft, line) => {
    draft.namespaceLabels = selector(line);
  },
  ttl: (draft, line) => {
    draft.ttl = integer(argumentsOf(line, 1)[0] ?? '', line.line, 0, MAX_TTL);
  },
  noendpoints: (draft, line) => {
    argumentsOf(line, 0);
    draft.noEndpoints = true;
  },
  ignore: (draft, line) => {
    const [what] = argumentsOf(line, 1);
    if (what !== 'empty_service') throw new CorefileError(line.line, `unable to parse ignore value: '${what}'`);
    draft.ignoreEmptyService = true;
  },
  fallthrough: (draft, line) => {
    draft.fallThrough = zoneList(line.args, line.line, ['']);
  },
  startup_timeout: (draft, line) => {
    draft.startupTimeoutMs = duration(argumentsOf(line, 1)[0] ?? '', line.line);
  },
};

/** `zones`: those of the server block, where the directive has none. Throws CorefileError. */
export function kubernetesSettings(directive: Directive, zones: readonly string[]): KubernetesSettings {
  const draft: Draft = {
    pods: 'disabled',
    endpointPodNames: false,
    namespaces: [],
    namespaceLabels: undefined,
    labels: undefined,
    ttl: DEFAULT_TTL,
    noEndpoints: false,
    ignoreEmptyService: false,
    fallThrough: undefined,
    startupTimeoutMs: STARTUP_MS,
  };
  for (const line of directive.block) {
    if (BY_FLAG.has(line.name)) {
      throw new CorefileError(line.line, `'${line.name}' of kubernetes is given by --kubeconfig of nodelet dns`);
    }
    if (MISSING.has(line.name)) throw new CorefileError(line.line, `'${line.name}' of kubernetes is not there`);
    const option = getOwn(OPTIONS, line.name);
    if (option === undefined) throw new CorefileError(line.line, `unknown property '${line.name}'`);
    option(draft, line);
  }
  const own = zoneList(directive.args, directive.line, zones);
  if (own.every(isReverseZone)) throw new CorefileError(directive.line, 'non-reverse zone name must be used');
  if (draft.namespaces.length > 0 && draft.namespaceLabels !== undefined) {
    throw new CorefileError(directive.line, 'namespaces and namespace_labels cannot both be set');
  }
  return { ...draft, zones: own };
}
