// Rules for containers: ordinary, init and ephemeral ones.

import { isSidecar } from '../../../lib/sidecar.ts';
import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  notFound,
  oneOf,
  optionalOneOf,
  required,
  syntax,
  tooMany,
} from '../field-errors.ts';
import { dns1123Label, ipAddress, portName, portNumber } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSpec, Volume } from '../shapes.ts';
import { validateEnv, validateEnvFrom } from './validate-env.ts';
import { validateLifecycle, validateProbes } from './validate-probes.ts';
import { validateResizePolicy, validateResourceRequirements } from './validate-resources.ts';
import { validateSecurityContext } from './validate-security.ts';
import { validateMounts } from './validate-volumes.ts';

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const RESTART_POLICIES = ['Always', 'Never', 'OnFailure'];

export interface ContainerSurroundings {
  readonly spec: PodSpec;
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly claims: ReadonlySet<string>;
}

export function surroundings(spec: PodSpec): ContainerSurroundings {
  return {
    spec,
    volumes: new Map((spec.volumes ?? []).map((volume) => [volume.name ?? '', volume])),
    claims: new Set((spec.resourceClaims ?? []).map((claim) => claim.name ?? '')),
  };
}

export function validateAllContainers(field: string, spec: PodSpec): FieldError[] {
  const around = surroundings(spec);
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const takeName = (at: string, name: string | undefined): void => {
    if (name === undefined || name === '') return;
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
  };
  if ((spec.containers ?? []).length === 0) errors.push(required(`${field}.containers`));
  for (const [index, container] of (spec.containers ?? []).entries()) {
    const at = `${field}.containers[${index}]`;
    addErrors(errors, validateCommon(at, container, around, false));
    takeName(at, container.name);
    addErrors(errors, validateRestart(at, container, false));
    if (container.lifecycle !== undefined) {
      addErrors(errors, validateLifecycle(`${at}.lifecycle`, container.lifecycle, spec.terminationGracePeriodSeconds));
    }
    addErrors(errors, validateProbes(at, container));
  }
  addErrors(errors, validateHostPorts(`${field}.containers`, spec.containers ?? []));
  for (const [index, container] of (spec.initContainers ?? []).entries()) {
    const at = `${field}.initContainers[${index}]`;
    addErrors(errors, validateCommon(at, container, around, false));
    takeName(at, container.name);
    addErrors(errors, validateInit(at, container, spec));
    addErrors(errors, validateHostPorts(`${field}.initContainers`, [container]));
  }
  for (const [index, container] of (spec.ephemeralContainers ?? []).entries()) {
    const at = `${field}.ephemeralContainers[${index}]`;
    addErrors(errors, validateCommon(at, container, around, true));
    takeName(at, container.name);
    addErrors(errors, validateEphemeral(at, container, spec));
  }
  return errors;
}

function validateCommon(
  field: string,
  container: Container,
  around: ContainerSurroundings,
  ephemeral: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const { name = '', image = '' } = container;
  if (name === '') errors.push(required(`${field}.name`));
  else addErrors(errors, syntax(`${field}.name`, name, dns1123Label(name)));
  if (image === '') errors.push(required(`${field}.image`));
  else if (image.trim() !== image) {
    errors.push(invalid(`${field}.image`, image, 'must not have leading or trailing whitespace'));
  }
  if (image !== '' || container.imagePullPolicy !== undefined) {
    addErrors(errors, oneOf(`${field}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES));
  }
  addErrors(
    errors,
    oneOf(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, ['FallbackToLogsOnError', 'File']),
  );
  addErrors(errors, validatePorts(`${field}.ports`, container.ports ?? []));
  addErrors(errors, validateEnv(`${field}.env`, container.env ?? []));
  addErrors(errors, validateEnvFrom(`${field}.envFrom`, container.envFrom ?? []));
  addErrors(errors, validateMounts(field, container, around.volumes, ephemeral));
  addErrors(errors, validateResourceRequirements(`${field}.resources`, container.resources ?? {}, around.claims));
  addErrors(errors, validateResizePolicy(`${field}.resizePolicy`, container, around.spec.restartPolicy));
  addErrors(errors, validateSecurityContext(`${field}.securityContext`, container.securityContext, around.spec));
  return errors;
}

type Port = NonNullable<Container['ports']>[number];

function validatePorts(field: string, ports: readonly Port[]): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    const name = port.name ?? '';
    if (name !== '') {
      const wrong = portName(name);
      addErrors(errors, syntax(`${at}.name`, name, wrong));
      if (wrong.length === 0 && names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    const number = port.containerPort ?? 0;
    if (number === 0) errors.push(required(`${at}.containerPort`));
    else addErrors(errors, syntax(`${at}.containerPort`, number, portNumber(number)));
    if (port.hostPort !== undefined)
      addErrors(errors, syntax(`${at}.hostPort`, port.hostPort, portNumber(port.hostPort)));
    if ((port.hostIP ?? '') !== '')
      addErrors(errors, syntax(`${at}.hostIP`, port.hostIP, ipAddress(port.hostIP ?? '')));
    return errors.concat(oneOf(`${at}.protocol`, port.protocol, PROTOCOLS));
  });
}

/** One host port can lead to one container only. */
function validateHostPorts(field: string, containers: readonly Container[]): FieldError[] {
  const taken = new Set<string>();
  const errors: FieldError[] = [];
  for (const [index, container] of containers.entries()) {
    for (const [portIndex, port] of (container.ports ?? []).entries()) {
      if (port.hostPort === undefined || port.hostPort === 0) continue;
      const key = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`;
      if (taken.has(key)) errors.push(duplicate(`${field}[${index}].ports[${portIndex}].hostPort`, key));
      taken.add(key);
    }
  }
  return errors;
}

function validateRestart(field: string, container: Container, init: boolean): FieldError[] {
  const policy = container.restartPolicy;
  const rules = container.restartPolicyRules ?? [];
  const errors: FieldError[] = [];
  addErrors(errors, optionalOneOf(`${field}.restartPolicy`, policy, RESTART_POLICIES));
  if (rules.length === 0) return errors;
  if (policy === undefined)
    errors.push(required(`${field}.restartPolicy`, 'must specify restartPolicy when restart rules are used'));
  if (init && policy === 'Always') {
    errors.push(forbidden(`${field}.restartPolicyRules`, 'restartPolicyRules are not allowed for sidecar containers'));
  }
  if (rules.length > 20) {
    errors.push(tooMany(`${field}.restartPolicyRules`, rules.length, 20));
  }
  for (const [index, rule] of rules.entries()) {
    const at = `${field}.restartPolicyRules[${index}]`;
    addErrors(errors, oneOf(`${at}.action`, rule.action, ['Restart']));
    if (rule.exitCodes === undefined) errors.push(required(`${at}.exitCodes`, 'must be specified'));
    else {
      addErrors(errors, oneOf(`${at}.exitCodes.operator`, rule.exitCodes.operator, ['In', 'NotIn']));
      if ((rule.exitCodes.values ?? []).length > 255) {
        errors.push(tooMany(`${at}.exitCodes.values`, rule.exitCodes.values?.length ?? 0, 255));
      }
    }
  }
  return errors;
}

function validateInit(field: string, container: Container, spec: PodSpec): FieldError[] {
  const errors = validateRestart(field, container, true);
  if (isSidecar(container)) {
    // A sidecar runs beside the others: it may be probed and hooked.
    if (container.lifecycle !== undefined) {
      addErrors(
        errors,
        validateLifecycle(`${field}.lifecycle`, container.lifecycle, spec.terminationGracePeriodSeconds),
      );
    }
    return errors.concat(validateProbes(field, container));
  }
  const without = 'may not be set for init containers without restartPolicy=Always';
  for (const part of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    if (container[part] !== undefined) errors.push(forbidden(`${field}.${part}`, without));
  }
  return errors;
}

function validateEphemeral(field: string, container: Container, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const target = container.targetContainerName ?? '';
  if (
    target !== '' &&
    ![...(spec.containers ?? []), ...(spec.initContainers ?? [])].some((one) => one.name === target)
  ) {
    errors.push(notFound(`${field}.targetContainerName`, target));
  }
  for (const part of [
    'ports',
    'livenessProbe',
    'readinessProbe',
    'startupProbe',
    'lifecycle',
    'resizePolicy',
  ] as const) {
    if (container[part] !== undefined)
      errors.push(forbidden(`${field}.${part}`, 'cannot be set for an Ephemeral Container'));
  }
  if (Object.keys(container.resources ?? {}).length > 0) {
    errors.push(forbidden(`${field}.resources`, 'cannot be set for an Ephemeral Container'));
  }
  if (container.restartPolicy !== undefined) {
    errors.push(forbidden(`${field}.restartPolicy`, 'cannot be set for an Ephemeral Container'));
  }
  return errors;
}
