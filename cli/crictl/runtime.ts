// The commands about the runtime itself: info, version, runtime-config, update-runtime-config, events.

import { UserError } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { StatusResponse__Output } from '../../proto/gen/runtime/v1/StatusResponse.ts';
import { formatMessage, formatStatuses, withInfo } from './format.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { type Json, messageFields, messageToJson } from './protojson.ts';
import { failed } from './report.ts';
import { table } from './table.ts';
import { runTemplate } from './template.ts';
import { parseTemplate } from './template-parse.ts';

/** A message as Go's encoding/json prints its struct: the .proto file's names, and nothing that is empty. Pure. */
export function withoutEmpty(name: string, message: unknown): { readonly [key: string]: Json } {
  const json = messageToJson(name, message);
  const entries = messageFields(name).flatMap((field) => {
    const value = getOwn(json, field.jsonName);
    if (value === undefined || value === false || value === '' || value === '0' || value === 0) return [];
    if (field.type !== 'TYPE_MESSAGE' || field.repeated || field.map) return [[field.name, value] as const];
    const inner = Object.entries(message ?? {}).find(([key]) => key === field.name)?.[1];
    return [[field.name, withoutEmpty(field.typeName, inner)] as const];
  });
  return Object.fromEntries(entries);
}

/** What info prints. Pure. */
export function infoJson(answer: StatusResponse__Output) {
  const handlers = answer.runtime_handlers.map((handler) => withoutEmpty('RuntimeHandler', handler));
  const status = {
    status: messageToJson('RuntimeStatus', answer.status),
    ...(handlers.length > 0 && { runtimeHandlers: handlers }),
    ...(answer.features !== null && { features: withoutEmpty('RuntimeFeatures', answer.features) }),
  };
  return withInfo(status, answer.info);
}

export async function info({ flags, args, console, openCri }: Invocation): Promise<void> {
  if (args.length > 0) throw new ShowHelp();
  const cri = await openCri();
  const answer = await failed('getting status of runtime', cri.call('Status', { verbose: !flags.bool('quiet') }));
  console.print(formatStatuses([infoJson(answer)], flags.text('output'), flags.text('template')));
}

export async function version({ args, console, openCri }: Invocation): Promise<void> {
  if (args.length > 0) throw new ShowHelp();
  const cri = await openCri();
  const answer = await failed('getting the runtime version', cri.call('Version', { version: 'v1' }));
  console.line(`Version:  ${answer.version}`);
  console.line(`RuntimeName:  ${answer.runtime_name}`);
  console.line(`RuntimeVersion:  ${answer.runtime_version}`);
  console.line(`RuntimeApiVersion:  ${answer.runtime_api_version}`);
}

export async function runtimeConfig({ console, openCri }: Invocation): Promise<void> {
  const cri = await openCri();
  const call = cri.call('RuntimeConfig', {});
  const { linux } = await failed('get runtime config: call RuntimeConfig RPC', call);
  if (linux !== null) console.print(table([['cgroup driver:', linux.cgroup_driver]], 10));
}

export async function updateRuntimeConfig({ flags, args, console, openCri }: Invocation): Promise<void> {
  if (args.length > 0 || !flags.isSet('pod-cidr')) throw new ShowHelp();
  const cri = await openCri();
  const runtime_config = { network_config: { pod_cidr: flags.text('pod-cidr') } };
  await failed('update runtime config', cri.call('UpdateRuntimeConfig', { runtime_config }));
  console.log('INFO', 'Runtime config successfully updated');
}

export async function events({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  if (args.length > 0) throw new ShowHelp();
  const [format, template] = [flags.text('output'), flags.text('template')];
  if (format === 'go-template') parseTemplate(template);
  else if (format !== 'json' && format !== 'yaml') throw new UserError(`don't support "${format}" format`);
  else if (template !== '') throw new UserError(`template can't be used with "${format}" format`);
  const cri = await openCri();
  const print = (event: unknown): void => {
    const json = messageToJson('ContainerEventResponse', event);
    if (format !== 'go-template') console.print(formatMessage('ContainerEventResponse', event, format) ?? '');
    else console.line(runTemplate(template, JSON.stringify(json)));
  };
  await failed('getting container events', cri.events(print, signal));
}
