// Which webhooks a request concerns: rules, scopes and selectors (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates).
// Pure.

import { matchesLabelSelector } from '../../../client/selectors.ts';
import { notFound } from '../../errors.ts';
import type { Match, NamedRule } from '../../kinds/admission-policies.ts';
import type { KubeObject, ObjectLookup } from '../../kinds/resource.ts';
import { type Rule, type Webhook, webhooksOf } from '../../kinds/webhooks.ts';
import type { AdmissionAttributes, OtherForm } from '../plugin.ts';
import { conditionsHold } from './conditions.ts';

export const GROUP = 'admissionregistration.k8s.io';
/** Webhooks do not decide about webhooks. */
const EXEMPT = new Set([
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
]);

export interface ConfiguredWebhook {
  readonly configuration: string;
  readonly hook: Webhook;
  /** Differs between webhooks, and stays the same over the passes of one request. */
  readonly id: string;
}

type Selector = Parameters<typeof matchesLabelSelector>[0];

function isNamespace({ resource }: AdmissionAttributes): boolean {
  return resource.group === '' && resource.plural === 'namespaces';
}

/** All webhooks of a kind of configuration, by the configurations' names and in their order. */
export function configuredWebhooks(
  plural: 'mutatingwebhookconfigurations' | 'validatingwebhookconfigurations',
  lookup: ObjectLookup,
): ConfiguredWebhook[] {
  const configurations = lookup.list(GROUP, plural);
  if (configurations.length === 0) return [];
  return configurations
    .toSorted((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
    .flatMap((stored) =>
      webhooksOf(stored).map((hook, index) => {
        const { name: configuration = '' } = stored.metadata;
        return { configuration, hook, id: `${configuration}/${hook.name ?? ''}/${index}` };
      }),
    );
}

export function isExempt({ kind }: AdmissionAttributes): boolean {
  return kind.group === GROUP && EXEMPT.has(kind.kind);
}

function matchesRule(rule: Rule, attributes: AdmissionAttributes): boolean {
  const { resource, operation, namespace } = attributes;
  const has = (list: readonly string[] | undefined, value: string): boolean =>
    list !== undefined && (list.includes('*') || list.includes(value));
  const inNamespace = namespace !== '' && !isNamespace(attributes);
  if (rule.scope === 'Namespaced' && !inNamespace) return false;
  if (rule.scope === 'Cluster' && inNamespace) return false;
  if (!has(rule.operations, operation)) return false;
  if (!has(rule.apiGroups, resource.group) || !has(rule.apiVersions, resource.version)) return false;
  return (rule.resources ?? []).some((name) => {
    const slash = name.indexOf('/');
    const [wanted, sub] = slash < 0 ? [name, ''] : [name.slice(0, slash), name.slice(slash + 1)];
    return (wanted === '*' || wanted === resource.plural) && (sub === '*' || sub === resource.subresource);
  });
}

/** The selector of the stored object; absent fields select everything. */
export function selectorOf(selector: Webhook['objectSelector']): Selector {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return {
    matchLabels: Object.fromEntries(Object.entries(matchLabels).map(([key, value]) => [key, value ?? ''])),
    matchExpressions: matchExpressions.map(({ key = '', operator = '', values = [] }) => ({ key, operator, values })),
  };
}

const isEmpty = (selector: Webhook['objectSelector']): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0;

/** The labels of the request's namespace; undefined for what is in none. Throws 404 for a namespace that is not there. */
function namespaceLabels(attributes: AdmissionAttributes, lookup: ObjectLookup): Record<string, string> | undefined {
  const { namespace, name, object } = attributes;
  if (isNamespace(attributes) && attributes.resource.subresource === '' && object !== undefined) {
    return object.metadata.labels ?? {};
  }
  const wanted = isNamespace(attributes) ? name : namespace;
  if (wanted === '') return undefined;
  const stored = lookup.get('', 'namespaces', '', wanted);
  if (stored === undefined) throw notFound({ group: '', plural: 'namespaces' }, wanted);
  return stored.metadata.labels ?? {};
}

function matchesObject(selector: Webhook['objectSelector'], objects: readonly (KubeObject | undefined)[]): boolean {
  if (isEmpty(selector)) return true;
  return objects.some(
    (object) =>
      object !== undefined &&
      Object.keys(object.metadata).length > 0 &&
      matchesLabelSelector(selectorOf(selector), object.metadata.labels ?? {}),
  );
}

/** The request in the form of `form`. */
function inForm(attributes: AdmissionAttributes, form: OtherForm): AdmissionAttributes {
  const { object, old } = attributes;
  return {
    ...attributes,
    resource: form.resource,
    kind: form.kind,
    object: object === undefined ? undefined : form.fromRequest(object),
    old: old === undefined ? undefined : form.fromRequest(old),
    request: attributes,
  };
}

/** The request as the first rule sees it that concerns it: as it is, or with Equivalent in another version. */
function underRules<R extends Rule>(
  rules: readonly R[],
  matchPolicy: string | undefined,
  attributes: AdmissionAttributes,
  also: (rule: R) => boolean = () => true,
): AdmissionAttributes | undefined {
  if (rules.some((rule) => matchesRule(rule, attributes) && also(rule))) return attributes;
  const forms = matchPolicy === 'Equivalent' ? (attributes.otherForms?.() ?? []) : [];
  for (const rule of rules) {
    const form = forms.find(({ resource }) => matchesRule(rule, { ...attributes, resource }) && also(rule));
    if (form !== undefined) return inForm(attributes, form);
  }
  return undefined;
}

/**
 * The request as a policy's match, or a binding's, sees it; undefined where it does not concern it. One without rules
 * concerns every resource.
 */
export function matchesResources(
  match: Match,
  attributes: AdmissionAttributes,
  lookup: ObjectLookup,
): AdmissionAttributes | undefined {
  if (!isEmpty(match.namespaceSelector)) {
    const labels = namespaceLabels(attributes, lookup);
    if (labels !== undefined && !matchesLabelSelector(selectorOf(match.namespaceSelector), labels)) return undefined;
  }
  if (!matchesObject(match.objectSelector, [attributes.object, attributes.old])) return undefined;
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = match;
  const hasName = ({ resourceNames = [] }: NamedRule): boolean =>
    resourceNames.length === 0 || resourceNames.includes(attributes.name);
  if (underRules(excludeResourceRules, matchPolicy, attributes, hasName) !== undefined) return undefined;
  return resourceRules.length === 0 ? attributes : underRules(resourceRules, matchPolicy, attributes, hasName);
}

/**
 * The request as the webhook is to see it; undefined where it is not to be called. Throws where its conditions cannot be
 * evaluated.
 */
export function concerns(
  { hook }: ConfiguredWebhook,
  attributes: AdmissionAttributes,
  lookup: ObjectLookup,
): AdmissionAttributes | undefined {
  const seen = underRules(hook.rules ?? [], hook.matchPolicy, attributes);
  if (seen === undefined) return undefined;
  if (!isEmpty(hook.namespaceSelector)) {
    const labels = namespaceLabels(attributes, lookup);
    if (labels !== undefined && !matchesLabelSelector(selectorOf(hook.namespaceSelector), labels)) return undefined;
  }
  if (!matchesObject(hook.objectSelector, [attributes.object, attributes.old])) return undefined;
  return conditionsHold(hook, seen) ? seen : undefined;
}
