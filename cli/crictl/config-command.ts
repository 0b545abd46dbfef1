// crictl config: shows and changes the options in the config file.

import { UserError } from '../../lib/errors.ts';
import {
  CONFIG_KEYS,
  changeConfig,
  configValue,
  isConfigKey,
  parseConfig,
  parseSettings,
  readConfigFile,
  writeConfigFile,
} from './config-file.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { table } from './table.ts';

export async function config({ flags, args, configPath, console }: Invocation): Promise<void> {
  const text = (await readConfigFile(configPath)) ?? '';
  const current = parseConfig(text);
  if (flags.isSet('get')) {
    const key = flags.text('get');
    if (!isConfigKey(key)) throw new UserError(`no configuration option named ${key}`);
    return console.line(String(current[key]));
  }
  if (flags.isSet('set')) return writeConfigFile(configPath, changeConfig(text, parseSettings(flags.list('set'))));
  if (flags.bool('list')) {
    return console.print(table([['KEY', 'VALUE'], ...CONFIG_KEYS.map((key) => [key, String(current[key])])]));
  }
  const [key = '', value = ''] = args;
  if (key === '') throw new ShowHelp();
  if (!isConfigKey(key)) throw new UserError(`set "${key}" to "${value}": no configuration option named ${key}`);
  console.log('INFO', `No --get, --set or --list provided, setting key "${key}" to value "${value}"`);
  await writeConfigFile(configPath, changeConfig(text, { [key]: configValue(key, value) }));
}
