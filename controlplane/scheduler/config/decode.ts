// A file of KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), text in, settings out. Unknown fields are refused,
// and so are those that this scheduler has nothing behind. Touches no files.

import { parseDocument } from 'yaml';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { EXTENSION_POINTS, type ExtensionPoint } from '../framework/framework.ts';
import { PLUGINS } from '../plugins/registry.ts';
import { pluginArgs } from './args.ts';
import {
  DEFAULT_SCHEDULER,
  DEFAULT_SETTINGS,
  type PluginSetting,
  type PointSettings,
  type ProfileSettings,
  type SchedulerSettings,
} from './model.ts';
import { Reader } from './reader.ts';

const API_VERSION = 'kubescheduler.config.k8s.io/v1';
const KIND = 'KubeSchedulerConfiguration';
const PERCENT = { min: 0, max: 100 };
const SECONDS = { min: 1, max: 2 ** 31 - 1 };

/** What kube-scheduler has and this scheduler does not. */
const NOT_HERE = {
  parallelism: 'is not there: a scheduling cycle is one piece of work here',
  leaderElection: 'is not there: the lease is set by the flags of nodelet controlplane',
  clientConnection: 'is not there: the kubeconfig is set by --scheduler-kubeconfig',
  enableProfiling: 'is not there: this process serves no profiles',
  enableContentionProfiling: 'is not there: this process serves no profiles',
  extenders: 'is not there: no extender is called',
  delayCacheUntilActive: 'is not there: the caches are shared with the controllers of the process',
};

function plugins(reader: Reader): PointSettings {
  const known = new Set(PLUGINS.map(({ name }) => name));
  const settings = (list: 'enabled' | 'disabled'): readonly PluginSetting[] =>
    reader.objects(list).map((each) => {
      const name = each.string('name') ?? each.fail('name', 'is required');
      if (!known.has(name) && !(list === 'disabled' && name === '*')) {
        each.fail('name', `plugin "${name}" does not exist`);
      }
      const weight = each.integer('weight', { min: 0, max: 100 });
      each.end();
      return { name, weight: weight === 0 ? undefined : weight };
    });
  const [enabled, disabled] = [settings('enabled'), settings('disabled')];
  reader.end();
  return { enabled, disabled: disabled.map(({ name }) => name) };
}

function profile(reader: Reader): ProfileSettings {
  const points = new Map<ExtensionPoint | 'multiPoint', PointSettings>();
  const sets = reader.object('plugins');
  for (const point of ['multiPoint', ...EXTENSION_POINTS] as const) {
    const set = sets?.object(point);
    if (set !== undefined) points.set(point, plugins(set));
  }
  sets?.end();
  const settings = {
    schedulerName: reader.string('schedulerName') ?? DEFAULT_SCHEDULER,
    percentageOfNodesToScore: reader.integer('percentageOfNodesToScore', PERCENT),
    plugins: points,
    args: pluginArgs(reader),
  };
  reader.end();
  return settings;
}

/** `source` is YAML or JSON. Throws UserError with the path of what is wrong. */
export function decodeSchedulerConfiguration(source: string): SchedulerSettings {
  const document = parseDocument(source);
  const [first] = document.errors;
  if (first !== undefined) throw new UserError(`not YAML or JSON: ${first.message.split('\n')[0]}`);
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    throw new UserError(errorMessage(error), { cause: error });
  }
  const reader = new Reader('', value);
  if (reader.string('apiVersion') !== API_VERSION) reader.fail('apiVersion', `must be ${API_VERSION}`);
  if (reader.string('kind') !== KIND) reader.fail('kind', `must be ${KIND}`);
  reader.refuse(NOT_HERE);
  const profiles = reader.objects('profiles').map(profile);
  const percentageOfNodesToScore = reader.integer('percentageOfNodesToScore', PERCENT);
  const initial = reader.integer('podInitialBackoffSeconds', SECONDS) ?? DEFAULT_SETTINGS.podInitialBackoffSeconds;
  const max = reader.integer('podMaxBackoffSeconds', SECONDS) ?? DEFAULT_SETTINGS.podMaxBackoffSeconds;
  if (max < initial) reader.fail('podMaxBackoffSeconds', 'must be greater than or equal to PodInitialBackoffSeconds');
  reader.end();
  const names = profiles.map(({ schedulerName }) => schedulerName);
  names.forEach((name, index) => {
    if (names.indexOf(name) < index) throw new UserError(`profiles[${index}].schedulerName: "${name}" is there twice`);
  });
  const sorts = new Set(profiles.map(({ plugins: points }) => JSON.stringify(points.get('queueSort')?.enabled ?? [])));
  if (sorts.size > 1) throw new UserError('profiles: must have the same queue sort plugin');
  return {
    percentageOfNodesToScore,
    podInitialBackoffSeconds: initial,
    podMaxBackoffSeconds: max,
    profiles: profiles.length === 0 ? DEFAULT_SETTINGS.profiles : profiles,
  };
}
