// From a profile's settings to the plugins at each extension point: what is enabled for all points (multiPoint), what for one,
// and what is disabled; in kube-scheduler's order. Pure, but for making the plugins.

import { UserError } from '../../../lib/errors.ts';
import type { PluginSetting, ProfileSettings } from '../config/model.ts';
import type { PluginHandle, PluginRow } from '../plugins/registry.ts';
import {
  EXTENSION_POINTS,
  type ExtensionPoint,
  Framework,
  type Nominations,
  type PluginSet,
  type PointTimes,
} from './framework.ts';
import type { Plugin } from './plugin.ts';

/** Whether a plugin has something to do at the extension point. */
function implementsPoint(plugin: Plugin, point: ExtensionPoint): boolean {
  switch (point) {
    case 'queueSort':
      return plugin.compare !== undefined;
    case 'reserve':
      return plugin.reserve !== undefined || plugin.unreserve !== undefined;
    default:
      return plugin[point] !== undefined;
  }
}

const isDisabled = (name: string, disabled: readonly string[]): boolean =>
  disabled.includes(name) || disabled.includes('*');

/** What multiPoint comes to: the defaults that are not disabled, then what is enabled. One that is named keeps its place. */
function multiPoint({ plugins }: ProfileSettings, rows: readonly PluginRow[]): readonly PluginSetting[] {
  const { enabled = [], disabled = [] } = plugins.get('multiPoint') ?? {};
  const custom = new Map(enabled.map((setting) => [setting.name, setting]));
  const kept = rows
    .filter(({ name }) => !isDisabled(name, disabled))
    .map(({ name }) => custom.get(name) ?? { name, weight: undefined });
  const names = new Set(kept.map(({ name }) => name));
  return [...kept, ...enabled.filter(({ name }) => !names.has(name))];
}

/**
 * Throws where the settings cannot be: a plugin that is not there, one enabled at a point that it has nothing to do at, one
 * enabled twice, or a profile without a plugin to sort the queue or to bind.
 */
export function makeFramework(
  settings: ProfileSettings,
  rows: readonly PluginRow[],
  handle: PluginHandle,
  nominations: Nominations,
  times?: PointTimes,
): Framework {
  const known = new Map(rows.map((row) => [row.name, row]));
  const made = new Map<string, Plugin>();
  const where = `profile "${settings.schedulerName}"`;
  const rowOf = (name: string, point: string): PluginRow => {
    const found = known.get(name);
    if (found === undefined) throw new UserError(`${where}: ${point} plugin "${name}" does not exist`);
    return found;
  };
  const pluginOf = (row: PluginRow): Plugin => {
    const plugin = made.get(row.name) ?? row.make(settings.args, handle);
    made.set(row.name, plugin);
    return plugin;
  };
  const general = multiPoint(settings, rows);
  const atPoint = (point: ExtensionPoint): PluginSet[ExtensionPoint] => {
    const { enabled = [], disabled = [] } = settings.plugins.get(point) ?? {};
    const own = new Map(enabled.map((setting) => [setting.name, setting]));
    if (own.size !== enabled.length) throw new UserError(`${where}: a ${point} plugin is enabled twice`);
    const resolve = ({ name, weight }: PluginSetting, explicit: boolean) => {
      const row = rowOf(name, point);
      const plugin = pluginOf(row);
      if (!implementsPoint(plugin, point)) {
        if (explicit) throw new UserError(`${where}: plugin "${name}" does not extend ${point} plugin`);
        return [];
      }
      return [{ plugin, weight: weight ?? row.weight }];
    };
    const fromAll = general.filter(({ name }) => own.has(name) || !isDisabled(name, disabled));
    // Those of multiPoint that this point sets anew, the point's own, then the rest of multiPoint.
    const names = new Set(fromAll.map(({ name }) => name));
    return [
      ...fromAll.flatMap(({ name }) => {
        const setting = own.get(name);
        return setting === undefined ? [] : resolve(setting, true);
      }),
      ...enabled.filter(({ name }) => !names.has(name)).flatMap((setting) => resolve(setting, true)),
      ...fromAll.filter(({ name }) => !own.has(name)).flatMap((setting) => resolve(setting, false)),
    ];
  };
  const set: PluginSet = {
    preEnqueue: atPoint('preEnqueue'),
    queueSort: atPoint('queueSort'),
    preFilter: atPoint('preFilter'),
    filter: atPoint('filter'),
    postFilter: atPoint('postFilter'),
    preScore: atPoint('preScore'),
    score: atPoint('score'),
    reserve: atPoint('reserve'),
    permit: atPoint('permit'),
    preBind: atPoint('preBind'),
    bind: atPoint('bind'),
    postBind: atPoint('postBind'),
  };
  for (const point of EXTENSION_POINTS) {
    if (point === 'queueSort' && set.queueSort.length !== 1) {
      throw new UserError(`${where}: only one queue sort plugin required, but got ${set.queueSort.length}`);
    }
    if (point === 'bind' && set.bind.length === 0) throw new UserError(`${where}: at least one bind plugin is needed`);
  }
  return new Framework(settings.schedulerName, set, nominations, settings.percentageOfNodesToScore, times);
}
