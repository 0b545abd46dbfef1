// crictl completion: the commands and global flags for bash, zsh and fish. Pure but for printing.

import { UserError } from '../../lib/errors.ts';
import { type CommandSpec, type Invocation, ShowHelp } from './invocation.ts';
import { GLOBAL_FLAGS } from './settings.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The words `nodelet crictl` come first; a command called crictl is completed too, for who has made an alias. */
export function completionScript(shell: string, commands: readonly CommandSpec[]): string | undefined {
  const names = commands.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  const flags = GLOBAL_FLAGS.map(({ name }) => `--${name}`);
  if (shell === 'bash') {
    return [
      '_nodelet_crictl() {',
      '  COMPREPLY=()',
      `  case "\${COMP_WORDS[0]}:\${COMP_WORDS[1]:-}" in`,
      `    crictl:* | *:crictl) COMPREPLY=($(compgen -W ${quoted([...names, ...flags].join(' '))} -- "\${COMP_WORDS[COMP_CWORD]}")) ;;`,
      `    *) [ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W crictl -- "\${COMP_WORDS[1]}")) ;;`,
      '  esac',
      '}',
      'complete -F _nodelet_crictl nodelet crictl',
      '',
    ].join('\n');
  }
  if (shell === 'zsh') {
    const described = commands.flatMap(({ name, aliases = [], usage }) =>
      [name, ...aliases].map((each) => quoted(`${each}:${usage}`)),
    );
    return [
      '#compdef crictl',
      '_crictl() {',
      `  local -a cmds=(${described.join(' ')})`,
      "  _describe 'commands' cmds",
      `  local -a opts=(${flags.map(quoted).join(' ')})`,
      "  _describe 'global options' opts",
      '}',
      'compdef _crictl crictl',
      '',
    ].join('\n');
  }
  if (shell !== 'fish') return undefined;
  const lines = commands.flatMap(({ name, aliases = [], usage }) =>
    [name, ...aliases].map((each) => `complete -c crictl -n __fish_use_subcommand -f -a ${each} -d ${quoted(usage)}`),
  );
  return `${[...lines, ...GLOBAL_FLAGS.map(({ name, usage }) => `complete -c crictl -l ${name} -d ${quoted(usage)}`)].join('\n')}\n`;
}

export async function completion({ args, console }: Invocation, commands: readonly CommandSpec[]): Promise<void> {
  if (args.length > 1) throw new ShowHelp();
  const script = completionScript(args[0] ?? 'bash', commands);
  if (script === undefined) throw new UserError('only bash, zsh or fish are supported');
  console.print(script);
}
