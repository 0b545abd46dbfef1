// PriorityLevelConfigurations: the row and its rules. What they do to requests is flowcontrol/.

import type { PriorityLevelConfiguration } from 'kubernetes-types/flowcontrol/v1';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, forbidden, invalid, notSupported, required } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { PRIORITY_LEVELS } from './default-objects.ts';
import { validateTypes } from './schemas.ts';

const of = (object: KubeObject): Of<PriorityLevelConfiguration> =>
  as<PriorityLevelConfiguration>(object, 'PriorityLevelConfiguration');
type Spec = NonNullable<Of<PriorityLevelConfiguration>['spec']>;
type Limited = NonNullable<Spec['limited']>;
type Queuing = NonNullable<NonNullable<Limited['limitResponse']>['queuing']>;

const MAX_QUEUES = 10_000_000;
const MAX_HASH_BITS = 60;
function applyDefaults(object: KubeObject): void {
  const level = of(object);
  level.spec ??= {};
  const { exempt, limited } = level.spec;
  if (exempt !== undefined) {
    exempt.nominalConcurrencyShares ??= 0;
    exempt.lendablePercent ??= 0;
  }
  if (limited === undefined) return;
  limited.nominalConcurrencyShares ??= 30;
  limited.lendablePercent ??= 0;
  const queuing = limited.limitResponse?.queuing;
  if (queuing === undefined) return;
  queuing.handSize ??= 8;
  queuing.queues ??= 64;
  queuing.queueLengthLimit ??= 50;
}

/** Shares and percentages, of both types of level. */
function validateShares(
  at: string,
  level: { nominalConcurrencyShares?: number | undefined; lendablePercent?: number | undefined },
) {
  const { nominalConcurrencyShares: shares = 0, lendablePercent: percent = 0 } = level;
  const errors: FieldError[] = [];
  if (shares < 0) errors.push(invalid(`${at}.nominalConcurrencyShares`, shares, 'must be a non-negative integer'));
  if (percent < 0 || percent > 100) {
    errors.push(invalid(`${at}.lendablePercent`, percent, 'must be between 0 and 100, inclusive'));
  }
  return errors;
}

function validateLimited(at: string, limited: Limited): FieldError[] {
  const { limitResponse: { type = '', queuing } = {}, borrowingLimitPercent: borrowing = 0 } = limited;
  const errors = validateShares(at, limited);
  const field = `${at}.limitResponse`;
  if (type === 'Reject') {
    if (queuing !== undefined) {
      errors.push(forbidden(`${field}.queuing`, 'must be nil if limited.limitResponse.type is not Limited'));
    }
  } else if (type !== 'Queue') errors.push(notSupported(`${field}.type`, type, ['Queue', 'Reject']));
  else if (queuing === undefined) {
    errors.push(required(`${field}.queuing`, 'must not be empty if limited.limitResponse.type is Limited'));
  } else addErrors(errors, validateQueuing(`${field}.queuing`, queuing));
  if (borrowing < 0) {
    errors.push(invalid(`${at}.borrowingLimitPercent`, borrowing, 'if specified, must be a non-negative integer'));
  }
  return errors;
}

function validateQueuing(at: string, { queues = 0, handSize = 0, queueLengthLimit = 0 }: Queuing): FieldError[] {
  const errors: FieldError[] = [];
  if (queueLengthLimit <= 0) errors.push(invalid(`${at}.queueLengthLimit`, queueLengthLimit, 'must be positive'));
  if (queues <= 0) errors.push(invalid(`${at}.queues`, queues, 'must be positive'));
  else if (queues > MAX_QUEUES) {
    errors.push(invalid(`${at}.queues`, queues, `must not be greater than ${MAX_QUEUES}`));
  }
  const field = `${at}.handSize`;
  if (handSize <= 0) errors.push(invalid(field, handSize, 'must be positive'));
  else if (handSize > queues) {
    errors.push(invalid(field, handSize, `should not be greater than queues (${queues})`));
  } else if (Math.ceil(Math.log2(queues) * handSize) > MAX_HASH_BITS) {
    const why = `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${MAX_HASH_BITS}`;
    errors.push(invalid(field, handSize, why));
  }
  return errors;
}

function validate(object: KubeObject): FieldError[] {
  const { spec = {}, metadata } = of(object);
  const { type = '', exempt, limited } = spec;
  const errors: FieldError[] = [];
  if ((metadata.name === 'exempt') !== (type === 'Exempt')) {
    errors.push(invalid('spec.type', type, "must be 'Exempt' if and only if `name` is 'exempt'"));
  }
  if (type === 'Exempt') {
    if (limited !== undefined) errors.push(forbidden('spec.limited', 'must be nil if the type is not Limited'));
    if (exempt !== undefined) addErrors(errors, validateShares('spec.exempt', exempt));
  } else if (type === 'Limited') {
    if (exempt !== undefined) errors.push(forbidden('spec.exempt', 'must be nil if the type is Limited'));
    if (limited === undefined) errors.push(required('spec.limited', 'must not be empty when type is Limited'));
    else addErrors(errors, validateLimited('spec.limited', limited));
  } else errors.push(notSupported('spec.type', type, ['Exempt', 'Limited']));
  if (metadata.name === 'catch-all' && !sameJson(spec, PRIORITY_LEVELS.mandatory['catch-all'])) {
    errors.push(invalid('spec', spec, "spec of 'catch-all' must equal the fixed value"));
  }
  return errors;
}

export const prioritylevelconfigurations = defineKind({
  group: 'flowcontrol.apiserver.k8s.io',
  version: 'v1',
  kind: 'PriorityLevelConfiguration',
  plural: 'prioritylevelconfigurations',
  singular: 'prioritylevelconfiguration',
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration',
  strategy: {
    applyDefaults,
    prepareForCreate: (object) => {
      of(object).status = {};
    },
    validateCreate: validate,
    validateUpdate: validate,
    validateStatusUpdate: (object) => validateTypes(of(object).status?.conditions),
    table: namedTable(
      [
        text('Type', 'Whether requests of the level are limited.'),
        text('NominalConcurrencyShares', 'The share of the level in all requests.'),
        text('Queues', 'The number of queues.'),
        text('HandSize', 'The number of queues that a flow may use.'),
        text('QueueLengthLimit', 'The number of requests in a queue.'),
      ],
      (object) => {
        const { type = '', limited } = of(object).spec ?? {};
        const none = '<none>';
        const { queues = none, handSize = none, queueLengthLimit = none } = limited?.limitResponse?.queuing ?? {};
        return [type, limited?.nominalConcurrencyShares ?? none, queues, handSize, queueLengthLimit];
      },
    ),
  },
});
