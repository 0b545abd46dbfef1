// Rules for containers: ordinary, init and ephemeral ones, in upstream's order.

import { isSidecar } from '../../../lib/sidecar.ts';
import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  notFound,
  notSupported,
  oneOf,
  oneOfListed,
  required,
  syntax,
  tooLong,
} from '../field-errors.ts';
import { dns1123Label, portName, portNumber } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSpec, Volume } from '../shapes.ts';
import { validateEnv, validateEnvFrom } from './validate-env.ts';
import { validateDevices, validateMounts } from './validate-mounts.ts';
import { validateLifecycle, validateProbes } from './validate-probes.ts';
import { validateContainerResources, validateResizePolicy } from './validate-resources.ts';
import { validateSecurityContext } from './validate-security.ts';

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const RESTART_POLICIES = ['Always', 'Never', 'OnFailure'];

/** What a container may refer to. */
export interface ContainerSurroundings {
  readonly spec: PodSpec;
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly claims: ReadonlySet<string>;
}

export function validateAllContainers(field: string, around: ContainerSurroundings): FieldError[] {
  return [
    ...validateContainers(`${field}.containers`, around),
    ...validateInitContainers(`${field}.initContainers`, around),
    ...validateEphemeralContainers(`${field}.ephemeralContainers`, around),
  ];
}

function validateContainers(field: string, around: ContainerSurroundings): FieldError[] {
  const containers = around.spec.containers ?? [];
  if (containers.length === 0) return [required(field)];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [index, container] of containers.entries()) {
    const at = `${field}[${index}]`;
    addErrors(errors, validateCommon(at, container, around));
    const name = container.name ?? '';
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    if (container.lifecycle !== undefined) {
      addErrors(errors, validateLifecycle(`${at}.lifecycle`, container.lifecycle, around.spec));
    }
    addErrors(errors, validateProbes(at, container), validateRestart(at, container));
  }
  return errors.concat(validateHostPorts(field, containers));
}

function validateCommon(field: string, container: Container, { spec, volumes, claims }: ContainerSurroundings) {
  const { name = '', image = '' } = container;
  const errors = name === '' ? [required(`${field}.name`)] : syntax(`${field}.name`, name, dns1123Label(name));
  if (image === '') errors.push(required(`${field}.image`));
  addErrors(
    errors,
    oneOfListed(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, [
      'File',
      'FallbackToLogsOnError',
    ]),
    validatePorts(`${field}.ports`, container.ports ?? []),
    validateEnv(`${field}.env`, container.env ?? []),
    validateEnvFrom(`${field}.envFrom`, container.envFrom ?? []),
    validateMounts(`${field}.volumeMounts`, container, volumes),
    validateDevices(`${field}.volumeDevices`, container, volumes),
    oneOf(`${field}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES),
    validateContainerResources(`${field}.resources`, container.resources ?? {}, claims),
    validateResizePolicy(`${field}.resizePolicy`, container.resizePolicy ?? [], spec.restartPolicy),
    validateSecurityContext(`${field}.securityContext`, container.securityContext, spec),
  );
  return errors;
}

type Port = NonNullable<Container['ports']>[number];

function validatePorts(field: string, ports: readonly Port[]): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    const { name = '', containerPort: number = 0, hostPort = 0 } = port;
    if (name !== '') {
      const wrong = portName(name);
      addErrors(errors, syntax(`${at}.name`, name, wrong));
      if (wrong.length === 0 && names.has(name)) errors.push(duplicate(`${at}.name`, name));
      if (wrong.length === 0) names.add(name);
    }
    if (number === 0) errors.push(required(`${at}.containerPort`));
    else addErrors(errors, syntax(`${at}.containerPort`, number, portNumber(number)));
    if (hostPort !== 0) addErrors(errors, syntax(`${at}.hostPort`, hostPort, portNumber(hostPort)));
    return errors.concat(oneOf(`${at}.protocol`, port.protocol, PROTOCOLS));
  });
}

/** One host port can lead to one container only. */
function validateHostPorts(field: string, containers: readonly Container[]): FieldError[] {
  const taken = new Set<string>();
  const errors: FieldError[] = [];
  for (const [index, container] of containers.entries()) {
    for (const [portIndex, port] of (container.ports ?? []).entries()) {
      if ((port.hostPort ?? 0) === 0) continue;
      const key = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`;
      if (taken.has(key)) errors.push(duplicate(`${field}[${index}].ports[${portIndex}].hostPort`, key));
      taken.add(key);
    }
  }
  return errors;
}

const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;

function validateRestart(field: string, container: Container): FieldError[] {
  const { restartPolicy: policy, restartPolicyRules: rules = [] } = container;
  const errors: FieldError[] = [];
  if (policy === undefined) {
    if (rules.length === 0) return errors;
    errors.push(required(`${field}.restartPolicy`, 'must specify restartPolicy when restart rules are used'));
  } else if (!RESTART_POLICIES.includes(policy)) {
    errors.push(notSupported(`${field}.restartPolicy`, policy, RESTART_POLICIES));
  }
  if (rules.length > MAX_RULES) errors.push(tooLong(`${field}.restartPolicyRules`, MAX_RULES));
  for (const [index, { action = '', exitCodes }] of rules.entries()) {
    const at = `${field}.restartPolicyRules[${index}]`;
    if (action !== 'Restart') errors.push(notSupported(`${at}.action`, action, ['Restart']));
    if (exitCodes === undefined) {
      errors.push(required(`${at}.exitCodes`, 'must be specified'));
      continue;
    }
    const { operator = '', values = [] } = exitCodes;
    if (operator !== 'In' && operator !== 'NotIn') {
      errors.push(notSupported(`${at}.exitCodes.operator`, operator, ['In', 'NotIn']));
    }
    if (values.length > MAX_EXIT_CODES) errors.push(tooLong(`${at}.exitCodes.values`, MAX_EXIT_CODES));
  }
  return errors;
}

function validateInitContainers(field: string, around: ContainerSurroundings): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set((around.spec.containers ?? []).map((container) => container.name ?? ''));
  for (const [index, container] of (around.spec.initContainers ?? []).entries()) {
    const at = `${field}[${index}]`;
    const name = container.name ?? '';
    addErrors(errors, validateCommon(at, container, around), validateInitRestart(at, container));
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    else if (name !== '') names.add(name);
    // Upstream shows every one of them as the first.
    addErrors(errors, validateHostPorts(field, [container]), validateHooks(at, container, around.spec));
  }
  return errors;
}

function validateInitRestart(at: string, container: Container): FieldError[] {
  if (container.restartPolicy === undefined) return [];
  if (!isSidecar(container)) return validateRestart(at, container);
  return (container.restartPolicyRules ?? []).length === 0
    ? []
    : [
        forbidden(
          `${at}.restartPolicyRules`,
          'restartPolicyRules are not allowed for init containers with restart policy Always',
        ),
      ];
}

/** A sidecar runs beside the others: it may be probed and hooked. */
function validateHooks(at: string, container: Container, spec: PodSpec): FieldError[] {
  if (isSidecar(container)) {
    const { lifecycle } = container;
    return [
      ...(lifecycle === undefined ? [] : validateLifecycle(`${at}.lifecycle`, lifecycle, spec)),
      ...validateProbes(at, container),
    ];
  }
  const without = 'may not be set for init containers without restartPolicy=Always';
  return (['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const).flatMap((part) =>
    container[part] === undefined ? [] : [forbidden(`${at}.${part}`, without)],
  );
}

/** Fields that make no sense in an ephemeral container, as they come in the type. */
const NOT_EPHEMERAL = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const;

function validateEphemeralContainers(field: string, around: ContainerSurroundings): FieldError[] {
  const { spec } = around;
  const others = new Set(
    [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map((container) => container.name ?? ''),
  );
  const names = new Set(others);
  return (spec.ephemeralContainers ?? []).flatMap((container, index) => {
    const at = `${field}[${index}]`;
    const name = container.name ?? '';
    const errors = validateCommon(at, container, around);
    addErrors(errors, validateImageSpace(`${at}.image`, container));
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    const target = container.targetContainerName ?? '';
    if (target !== '' && !others.has(target)) errors.push(notFound(`${at}.targetContainerName`, target));
    const cannot = 'cannot be set for an Ephemeral Container';
    for (const part of NOT_EPHEMERAL) if (isSet(part, container)) errors.push(forbidden(`${at}.${part}`, cannot));
    for (const [place, { subPath = '', subPathExpr = '' }] of (container.volumeMounts ?? []).entries()) {
      if (subPath !== '') errors.push(forbidden(`${at}.volumeMounts[${place}].subPath`, cannot));
      if (subPathExpr !== '') errors.push(forbidden(`${at}.volumeMounts[${place}].subPathExpr`, cannot));
    }
    return errors;
  });
}

/** An empty handler is one; resources and lists are there only with something in them. */
function isSet(part: (typeof NOT_EPHEMERAL)[number], container: Container): boolean {
  const value = container[part];
  if (Array.isArray(value)) return value.length > 0;
  return part === 'resources' ? Object.keys(value ?? {}).length > 0 : value !== undefined;
}

/** Of pods, not of templates. */
export function validateImageSpaces(field: string, spec: PodSpec): FieldError[] {
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap((container, index) => validateImageSpace(`${field}.${list}[${index}].image`, container)),
  );
}

function validateImageSpace(field: string, { image = '' }: Container): FieldError[] {
  return image.trim() === image ? [] : [invalid(field, image, 'must not have leading or trailing whitespace')];
}
