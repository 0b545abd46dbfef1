// An experiment's fault rules in the words of what makes the faults: the tap's rules, the CSI driver's control file, and the
// directories that the wrapper of CNI plugins reads. Pure. What one of them cannot do is named by `faultProblem`.

import { UserError } from '../../../lib/errors.ts';
import { type FaultRules, parseFaultRules } from '../../tap/fault-rules.ts';
import { milliseconds } from '../duration.ts';
import type { FaultRule } from '../model.ts';

/** Rules of CRI whose call begins so are about events of the runtime: "event CONTAINER_STOPPED_EVENT", "event /tasks/exit". */
const EVENT = 'event ';

/** Why a rule cannot be followed there; undefined when it can. */
export function faultProblem(on: 'cri' | 'cni' | 'csi' | 'api' | 'dns', rule: FaultRule): string | undefined {
  switch (on) {
    case 'cri':
      return rule.call.startsWith(EVENT) && rule.action !== 'drop'
        ? "the runtime's events can be lost there (`action: drop`), and nothing else: use --on sim"
        : undefined;
    case 'cni':
      return rule.action === 'duplicate' ? 'a CNI plugin is run once for each call: nothing is duplicated' : undefined;
    case 'csi':
      if (rule.action === 'drop' || rule.action === 'duplicate')
        return `the lab's CSI driver has no ${rule.action}: it can fail, delay and hang`;
      if (rule.pod !== undefined) return "the lab's CSI driver does not know the pod of a call: leave `pod` out";
      return undefined;
    case 'api':
      return rule.action === 'duplicate' ? 'an API call is passed on once there: use --on sim' : undefined;
    case 'dns':
      return "queries of a lab's name server neither fail nor wait: use --on sim";
  }
}

const MILLISECONDS_DEFAULT = '1s';

/** The rules of `nodelet tap fault`. Throws UserError for a code that gRPC does not have. */
export function criFaults(rules: readonly FaultRule[]): FaultRules {
  if (rules.length === 0) return { seed: 1, rules: [] };
  const tapRules = rules.map((rule) => ({
    ...(rule.call.startsWith(EVENT) ? { event: rule.call.slice(EVENT.length) } : { method: rule.call }),
    ...(rule.pod === undefined ? {} : { pod: rule.pod }),
    ...(rule.times === undefined ? {} : { count: rule.times }),
    ...(rule.delay !== undefined || rule.action === 'delay'
      ? { delay: `${milliseconds(rule.delay ?? MILLISECONDS_DEFAULT)}ms` }
      : {}),
    ...effect(rule),
  }));
  return parseFaultRules(JSON.stringify({ rules: tapRules }), 'the fault step');
}

function effect({ action, code = 'UNAVAILABLE', message = 'failed by the experiment' }: FaultRule): object {
  switch (action) {
    case 'fail':
      return { fail: { code, message } };
    case 'drop':
      return { drop: true };
    case 'hang':
      return { hang: true };
    case 'duplicate':
      return { duplicate: 1 };
    case 'delay':
      return {};
  }
}

/** The control file of the CSI driver (docs/csi.md): JSON. */
export function csiFaults(rules: readonly FaultRule[]): string {
  return JSON.stringify(
    rules.map((rule) => {
      const problem = faultProblem('csi', rule);
      if (problem !== undefined) throw new UserError(problem);
      return {
        method: rule.call,
        action: rule.action,
        // 0 is "always" there.
        times: rule.times ?? 0,
        ...(rule.action === 'delay' ? { delayMs: milliseconds(rule.delay ?? MILLISECONDS_DEFAULT) } : {}),
        ...(rule.code === undefined ? {} : { code: rule.code }),
        ...(rule.message === undefined ? {} : { message: rule.message }),
      };
    }),
  );
}

/** A rule as files: what the wrapper of plugins reads with a shell. By name below the rule's directory. */
export function cniRuleFiles(rule: FaultRule): ReadonlyMap<string, string> {
  const message = rule.message ?? 'failed by the experiment';
  const error = { cniVersion: '1.0.0', code: Number(rule.code ?? 11), msg: message };
  return new Map([
    ['call', rule.call],
    ['pod', rule.pod ?? '*'],
    ['action', rule.action],
    [
      'seconds',
      String(
        rule.delay === undefined && rule.action !== 'delay'
          ? 0
          : milliseconds(rule.delay ?? MILLISECONDS_DEFAULT) / 1000,
      ),
    ],
    ['error', JSON.stringify(error)],
    ...Array.from({ length: rule.times ?? 0 }, (_, index): [string, string] => [`left/${index + 1}`, '']),
    ...(rule.times === undefined ? [['always', ''] as [string, string]] : []),
  ]);
}

/**
 * The wrapper, under the name of each plugin: "ADD bridge" is a call. Rules are directories below `directory`, in the order of
 * their names; one that holds for some calls only has a file for each, and who moves one away has the right to it. It may be
 * run through a link.
 */
export const cniWrapper = (directory: string): string => `#!/bin/sh
here='${directory.replaceAll("'", "'\\''")}'
name=$(basename "$0")
call="$CNI_COMMAND $name"
namespace=
pod=
rest="$CNI_ARGS;"
while [ "$rest" != "" ]; do
  part=\${rest%%;*}
  rest=\${rest#*;}
  case $part in
    K8S_POD_NAMESPACE=*) namespace=\${part#*=} ;;
    K8S_POD_NAME=*) pod=\${part#*=} ;;
  esac
done
for rule in "$here"/rules/*/; do
  [ -f "$rule/call" ] || continue
  read -r pattern < "$rule/call" || [ "$pattern" != "" ]
  case $call in $pattern) ;; *) [ "$CNI_COMMAND" = "$pattern" ] || [ "$name" = "$pattern" ] || continue ;; esac
  read -r wanted < "$rule/pod" || [ "$wanted" != "" ]
  case $wanted in */*) about="$namespace/$pod" ;; *) about=$pod ;; esac
  case $about in $wanted) ;; *) continue ;; esac
  if ! [ -f "$rule/always" ]; then
    mine=
    for token in "$rule"/left/*; do
      [ -f "$token" ] && mv "$token" "$rule/used-$$" 2>/dev/null && mine=yes && break
    done
    [ "$mine" = yes ] || continue
  fi
  read -r action < "$rule/action" || [ "$action" != "" ]
  read -r seconds < "$rule/seconds" || [ "$seconds" != "" ]
  [ "$seconds" = 0 ] || sleep "$seconds"
  case $action in
    fail) cat "$rule/error"; exit 1 ;;
    drop) "$here/real/$name" > /dev/null; cat "$rule/error"; exit 1 ;;
    hang) exec sleep 1000000 ;;
  esac
  break
done
exec "$here/real/$name"
`;
