// ValidatingAdmissionPolicy: requests keep to the CEL rules of the policies that are bound to them
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating).

import { CelBudget } from '../../cel/cel.ts';
import { StatusError } from '../../errors.ts';
import { bindingOf, policyOf } from '../../kinds/admission-policies.ts';
import type { KubeObject, ObjectLookup } from '../../kinds/resource.ts';
import { type AdmissionAttributes, type AdmissionPlugin, refusalOf } from '../plugin.ts';
import { type CompiledPolicy, compilePolicy, judge, requestVariables } from '../policies/evaluate.ts';
import { collectParams, type FindKind, ParamError } from '../policies/params.ts';
import { GROUP, isExempt, matchesResources } from '../webhooks/match.ts';

/** By reason; all others are 422. */
const CODES = new Map([
  ['Forbidden', 403],
  ['Unauthorized', 401],
  ['RequestEntityTooLarge', 413],
]);
const FAILURES = 'validation.policy.admission.k8s.io/validation_failure';
const MAX_ANNOTATION = 10 * 1024;
const MAX_FAILURES = 50;

interface Denied {
  readonly policy: string;
  readonly binding: string;
  readonly message: string;
  readonly reason: string;
}

/** What has been found out about a request, over all policies. */
class Findings {
  readonly denied: Denied[] = [];
  readonly audited: object[] = [];
  /** Sent once everything is known: the evaluation may begin anew where a parameter has to be converted first. */
  readonly warnings: string[] = [];
  readonly annotations = new Map<string, Set<string>>();
}

function refuse(attributes: AdmissionAttributes, { policy, binding, message, reason }: Denied): never {
  const whole = `ValidatingAdmissionPolicy '${policy}' with binding '${binding}' denied request: ${message}`;
  const { status } = refusalOf(attributes, whole);
  const details = { ...status.details, causes: [{ message: whole }] };
  throw new StatusError(CODES.get(reason) ?? 422, reason, status.message ?? whole, details);
}

const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';

/** `findKind`: where parameters of a kind are. */
export function validatingAdmissionPolicy(findKind: FindKind): AdmissionPlugin {
  /** By the policy as it is stored. */
  const compiled = new WeakMap<KubeObject, CompiledPolicy>();
  const programsOf = (stored: KubeObject): CompiledPolicy => {
    const known = compiled.get(stored) ?? compilePolicy(policyOf(stored));
    compiled.set(stored, known);
    return known;
  };

  function apply(
    stored: KubeObject,
    bound: KubeObject,
    attributes: AdmissionAttributes,
    variables: () => Readonly<Record<string, unknown>>,
    budget: CelBudget,
    findings: Findings,
    lookup: ObjectLookup,
  ): void {
    const { spec = {} } = policyOf(stored);
    const { paramRef, validationActions = [] } = bindingOf(bound).spec ?? {};
    const names = { policy: nameOf(stored), binding: nameOf(bound) };
    const failOpen = spec.failurePolicy === 'Ignore';
    try {
      const params = collectParams(spec.paramKind, paramRef, attributes.namespace, findKind, lookup);
      for (const param of params) {
        const verdict = judge(programsOf(stored), variables(), param, failOpen, budget);
        for (const { index, message, reason } of verdict.denials) {
          if (validationActions.includes('Deny')) findings.denied.push({ ...names, message, reason });
          if (validationActions.includes('Audit')) {
            findings.audited.push({ message, ...names, expressionIndex: index, validationActions });
          }
          if (validationActions.includes('Warn')) {
            const what = `ValidatingAdmissionPolicy '${names.policy}' with binding '${names.binding}'`;
            findings.warnings.push(`Validation failed for ${what}: ${message}`);
          }
        }
        for (const message of verdict.failures) findings.denied.push({ ...names, message, reason: 'Invalid' });
        for (const { key, value } of verdict.annotations) {
          const whole = `${names.policy}/${key}`;
          const values = findings.annotations.get(whole) ?? new Set();
          findings.annotations.set(whole, values.add(value.slice(0, MAX_ANNOTATION)));
        }
      }
    } catch (error) {
      if (!(error instanceof ParamError)) throw error;
      const message = `failed to configure binding: ${error.message}`;
      if (!failOpen) findings.denied.push({ ...names, message, reason: 'Invalid' });
    }
  }

  return {
    name: 'ValidatingAdmissionPolicy',
    handles: () => true,
    validate: (attributes, lookup) => {
      const bindings = lookup.list(GROUP, 'validatingadmissionpolicybindings');
      if (bindings.length === 0 || isExempt(attributes)) return;
      const findings = new Findings();
      const budget = new CelBudget();
      const known = new Map<string, Readonly<Record<string, unknown>>>();
      const variables = (seen: AdmissionAttributes): Readonly<Record<string, unknown>> => {
        const { namespace, resource } = seen;
        const key = `${resource.group}/${resource.version}`;
        const made =
          known.get(key) ??
          requestVariables(seen, namespace === '' ? undefined : lookup.get('', 'namespaces', '', namespace));
        known.set(key, made);
        return made;
      };
      for (const bound of bindings.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))) {
        const { policyName = '', matchResources } = bindingOf(bound).spec ?? {};
        const stored = lookup.get(GROUP, 'validatingadmissionpolicies', '', policyName);
        const constraints = stored === undefined ? undefined : policyOf(stored).spec?.matchConstraints;
        if (stored === undefined || constraints === undefined) continue;
        const seen = matchesResources(constraints, attributes, lookup);
        if (seen === undefined) continue;
        if (matchResources !== undefined && matchesResources(matchResources, attributes, lookup) === undefined)
          continue;
        apply(stored, bound, attributes, () => variables(seen), budget, findings, lookup);
      }
      for (const warning of findings.warnings) attributes.warn(warning);
      for (const [key, values] of findings.annotations) attributes.annotate(key, [...values].join(', '));
      if (findings.audited.length > 0) {
        attributes.annotate(FAILURES, JSON.stringify(findings.audited.slice(0, MAX_FAILURES)));
      }
      const [first] = findings.denied;
      if (first !== undefined) refuse(attributes, first);
    },
  };
}
